-- The share of a run that functions take: the median, and the 99th percentile, of the runs in which they occur.
SELECT f.name, f.module, COUNT(*) AS runs, ROUND(PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY CAST(c.self AS DOUBLE) / r.run_cost), 6) AS p50, ROUND(PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY CAST(c.self AS DOUBLE) / r.run_cost), 6) AS p99
FROM fcost c JOIN run r ON r.run_id = c.run_id AND r.metric = c.metric JOIN fn f ON f.fn_id = c.fn_id
WHERE c.metric = {metric} AND r.run_cost > 0 AND c.self > 0 AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since})
GROUP BY f.name, f.module, f.kind ORDER BY p99 DESC, f.name, f.module, f.kind LIMIT {limit};
