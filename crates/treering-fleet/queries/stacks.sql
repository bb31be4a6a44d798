-- Chains of callers by their own cost, from the sums of each day: the flame graph of a fleet.
SELECT f.name, f.module, s.depth, SUM(CAST(r.self AS DECIMAL(38,0))) AS self_cost, MAX(r.greatest) AS greatest_of_a_run, SUM(r.runs) AS rows_of_runs
FROM rollup r JOIN stack s ON s.stack_id = r.stack_id JOIN fn f ON f.fn_id = r.fn_id
WHERE r.metric = {metric} AND ({project} = '' OR r.project = {project}) AND ({since} = '' OR r.day >= {since})
GROUP BY r.stack_id, f.name, f.module, s.depth ORDER BY self_cost DESC, f.name, f.module, s.depth LIMIT {limit};
