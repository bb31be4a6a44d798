-- Hosts whose runs cost more or less than those of most hosts of the same project do, and the functions in which they do,
-- with all that these call; at least five hosts, a fifth of a run, and farther than runs of one host differ.
WITH r AS (SELECT run_id, project, host, SUM(CAST(run_cost AS DOUBLE)) AS cost, SUM(CAST(samples AS DOUBLE)) AS run_samples, DENSE_RANK() OVER (ORDER BY host, project) AS host_number FROM run
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since}) GROUP BY run_id, project, host),
n AS (SELECT project, host, host_number, CAST(COUNT(*) AS DOUBLE) AS runs, CASE WHEN SUM(run_samples) > 0 THEN SUM(cost) / SUM(run_samples) ELSE 0.0 END AS weight, COUNT(*) OVER (PARTITION BY project) AS hosts FROM r GROUP BY project, host, host_number),
f AS (SELECT c.project, c.fn_id, DENSE_RANK() OVER (ORDER BY c.project, c.fn_id) AS fn_number FROM fcost c
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since}) GROUP BY c.project, c.fn_id),
h AS (SELECT f.fn_number, r.host_number, SUM(CAST(c.total AS DOUBLE)) AS cost, SUM(CAST(c.total AS DOUBLE) * CAST(c.total AS DOUBLE)) AS squares FROM fcost c JOIN r ON r.run_id = c.run_id JOIN f ON f.project = c.project AND f.fn_id = c.fn_id
 WHERE c.metric = {metric} AND ({since} = '' OR c.day >= {since}) GROUP BY f.fn_number, r.host_number),
g AS (SELECT n.project, n.host, n.host_number, n.runs, n.weight, f.fn_id, f.fn_number FROM f JOIN n ON n.project = f.project WHERE n.hosts >= 5),
q AS (SELECT g.project, g.host, g.fn_id, g.fn_number, g.runs, g.weight, COALESCE(h.cost, 0.0) / g.runs AS mean, SQRT(GREATEST(COALESCE(h.squares, 0.0) - COALESCE(h.cost, 0.0) * COALESCE(h.cost, 0.0) / g.runs, 0.0) / GREATEST(g.runs - 1.0, 1.0) / g.runs) AS error
 FROM g LEFT JOIN h ON h.fn_number = g.fn_number AND h.host_number = g.host_number),
m AS (SELECT project, host, fn_id, fn_number, runs, weight, mean, error, MEDIAN(mean) OVER (PARTITION BY fn_number) AS typical FROM q),
d AS (SELECT project, host, fn_id, runs, weight, mean, error, typical, MEDIAN(ABS(mean - typical)) OVER (PARTITION BY fn_number) AS spread FROM m),
u AS (SELECT project, metric, MEDIAN(CAST(run_cost AS DOUBLE)) AS middle FROM run
 WHERE (main OR metric = {metric}) AND unit IN (SELECT DISTINCT unit FROM run WHERE metric = {metric}) AND ({since} = '' OR day >= {since}) GROUP BY project, metric),
w AS (SELECT project, MAX(middle) AS whole FROM u GROUP BY project),
z AS (SELECT d.project, d.host, d.fn_id, d.mean, d.typical, ROUND(d.mean - d.typical, 0) AS step, (d.mean - d.typical) / GREATEST(1.4826 * d.spread, d.error, SQRT((d.typical + d.weight) * d.weight / d.runs), 0.05 * w.whole, 1.0) AS distance
 FROM d JOIN w ON w.project = d.project)
SELECT z.host, z.project, f.name, f.module, ROUND(z.mean, 0) AS host_cost, ROUND(z.typical, 0) AS typical_cost, ROUND(z.distance, 2) AS distance
FROM z JOIN fn f ON f.fn_id = z.fn_id WHERE ABS(z.distance) >= 4 ORDER BY ABS(z.step) DESC, z.host, z.project, f.name, f.module, f.kind LIMIT {limit};
