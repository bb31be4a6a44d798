-- Functions whose share of a day's cost grows or shrinks most from day to day; of five days or more.
WITH t AS (SELECT day, SUM(CAST(run_cost AS DOUBLE)) AS cost, MIN(CAST(start_unix_ns AS DOUBLE)) / 86400000000000.0 AS days FROM run
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since}) GROUP BY day HAVING SUM(CAST(run_cost AS DOUBLE)) > 0),
s AS (SELECT c.day, c.fn_id, SUM(CAST(c.self AS DOUBLE)) / MAX(t.cost) AS share, MAX(t.days) AS days_at FROM fcost c JOIN t ON t.day = c.day
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) GROUP BY c.day, c.fn_id),
g AS (SELECT fn_id, REGR_SLOPE(share, days_at) AS slope, AVG(share) AS mean, COUNT(*) AS days FROM s GROUP BY fn_id HAVING COUNT(*) >= 5)
SELECT f.name, f.module, g.days, ROUND(g.mean, 5) AS mean_share, ROUND(g.slope, 6) AS change_per_day FROM g JOIN fn f ON f.fn_id = g.fn_id
ORDER BY ABS(ROUND(g.slope, 6)) DESC, f.name, f.module, f.kind LIMIT {limit};
