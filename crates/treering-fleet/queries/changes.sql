-- Days since which functions take another share of a day's cost than before; of eight days or more. The distance is in
-- units of what the days differ by otherwise, and of what sampling alone explains.
WITH t AS (SELECT day, SUM(CAST(run_cost AS DOUBLE)) AS cost, SUM(CAST(samples AS DOUBLE)) AS samples FROM run
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since}) GROUP BY day HAVING SUM(CAST(run_cost AS DOUBLE)) > 0),
n AS (SELECT CAST(COUNT(*) AS DOUBLE) AS days, CASE WHEN COUNT(samples) < COUNT(*) THEN NULL ELSE AVG(samples) END AS samples FROM t HAVING COUNT(*) >= 8),
k AS (SELECT c.day, c.fn_id, SUM(CAST(c.self AS DOUBLE)) AS own FROM fcost c
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since}) GROUP BY c.day, c.fn_id),
f1 AS (SELECT DISTINCT fn_id FROM k),
s AS (SELECT f1.fn_id, t.day, COALESCE(k.own, 0.0) / t.cost AS share FROM f1 CROSS JOIN t LEFT JOIN k ON k.fn_id = f1.fn_id AND k.day = t.day),
w AS (SELECT fn_id, LEAD(day) OVER (PARTITION BY fn_id ORDER BY day) AS next_day, SUM(share) OVER (PARTITION BY fn_id ORDER BY day ROWS UNBOUNDED PRECEDING) AS sum_before,
 CAST(ROW_NUMBER() OVER (PARTITION BY fn_id ORDER BY day) AS DOUBLE) AS days_before, SUM(share) OVER (PARTITION BY fn_id) AS whole, SUM(share * share) OVER (PARTITION BY fn_id) AS squares FROM s),
c AS (SELECT w.fn_id, w.next_day, n.days, w.whole / n.days AS mean, w.squares - w.whole * w.whole / n.days AS spread, w.sum_before / w.days_before AS mean_before, (w.whole - w.sum_before) / GREATEST(n.days - w.days_before, 1.0) AS mean_after,
 n.days / w.days_before / GREATEST(n.days - w.days_before, 1.0) AS parts, n.samples FROM w CROSS JOIN n WHERE w.days_before >= 2 AND n.days - w.days_before >= 2),
g AS (SELECT fn_id, next_day, mean_before, mean_after, mean, spread, parts, days, samples, ROUND((mean_after - mean_before) * (mean_after - mean_before) / parts, 12) AS gain FROM c),
b AS (SELECT fn_id, MAX(gain) AS gain FROM g GROUP BY fn_id),
p AS (SELECT g.fn_id, MIN(g.next_day) AS next_day FROM g JOIN b ON b.fn_id = g.fn_id AND b.gain = g.gain GROUP BY g.fn_id),
z AS (SELECT g.fn_id, g.next_day, g.mean_before, g.mean_after, ROUND(ABS(g.mean_after - g.mean_before), 5) AS step, (g.mean_after - g.mean_before) / (SQRT(GREATEST(g.spread - g.gain, 0.0) / (g.days - 2) * g.parts)
 + CASE WHEN g.samples IS NULL THEN 0.0 ELSE SQRT((g.mean + 1.0 / GREATEST(g.samples, 1.0)) / GREATEST(g.samples, 1.0) * g.parts) END + 0.0001) AS away FROM g JOIN p ON p.fn_id = g.fn_id AND p.next_day = g.next_day)
SELECT f.name, f.module, z.next_day AS since_day, ROUND(z.mean_before, 5) AS share_before, ROUND(z.mean_after, 5) AS share_after, ROUND(z.away, 2) AS distance
FROM z JOIN fn f ON f.fn_id = z.fn_id WHERE ABS(z.away) >= 5 ORDER BY z.step DESC, f.name, f.module LIMIT {limit};
