-- What the changed Lua runs: strings, tables, sorting, patterns, numbers, garbage.
local records = {}
for i = 1, 400 do
  table.insert(records, { name = "name" .. i % 37 .. "-" .. i, value = (i * 7919) % 1009, text = tostring(i * 1.5) })
end
table.sort(records, function(a, b) return a.value < b.value end)
local names = {}
for _, record in ipairs(records) do names[#names + 1] = record.name end
table.sort(names)
local count = 0
for _, name in ipairs(names) do
  for _ in name:gmatch("%a+%d*") do count = count + 1 end
  count = count + tonumber(name:match("%d+"))
end
local seen = {}
for i = 1, 300 do
  local key = string.format("key%d", i % 50)
  seen[key] = (rawget(seen, key) or 0) + select("#", math.type(i), type(key), tostring(i))
end
print(#records, count, seen.key7)
