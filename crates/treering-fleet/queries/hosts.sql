-- Hosts whose runs cost more or less than those of most hosts of the same project do, and the functions in which they do,
-- with all that these call; at least five hosts, a fifth of a run, and farther than runs of one host differ.
WITH r AS (SELECT run_id, project, host, CAST(run_cost AS DOUBLE) AS cost, CAST(samples AS DOUBLE) AS samples FROM run
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since})),
n AS (SELECT project, host, CAST(COUNT(*) AS DOUBLE) AS runs, CASE WHEN SUM(samples) > 0 THEN SUM(cost) / SUM(samples) ELSE 0.0 END AS weight FROM r GROUP BY project, host),
k AS (SELECT project FROM n GROUP BY project HAVING COUNT(*) >= 5),
h AS (SELECT r.project, r.host, c.fn_id, SUM(CAST(c.total AS DOUBLE)) AS cost, SUM(CAST(c.total AS DOUBLE) * CAST(c.total AS DOUBLE)) AS squares FROM fcost c JOIN r ON r.run_id = c.run_id
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since}) GROUP BY r.project, r.host, c.fn_id),
f1 AS (SELECT DISTINCT h.project, h.fn_id FROM h JOIN k ON k.project = h.project),
q AS (SELECT n.project, n.host, f1.fn_id, n.runs, n.weight, COALESCE(h.cost, 0.0) / n.runs AS mean, SQRT(GREATEST(COALESCE(h.squares, 0.0) - COALESCE(h.cost, 0.0) * COALESCE(h.cost, 0.0) / n.runs, 0.0) / GREATEST(n.runs - 1.0, 1.0) / n.runs) AS error
 FROM f1 JOIN n ON n.project = f1.project LEFT JOIN h ON h.project = n.project AND h.host = n.host AND h.fn_id = f1.fn_id),
m AS (SELECT project, fn_id, MEDIAN(mean) AS typical FROM q GROUP BY project, fn_id),
d AS (SELECT q.project, q.fn_id, MEDIAN(ABS(q.mean - m.typical)) AS spread FROM q JOIN m ON m.project = q.project AND m.fn_id = q.fn_id GROUP BY q.project, q.fn_id),
u AS (SELECT project, metric, MEDIAN(CAST(run_cost AS DOUBLE)) AS middle FROM run
 WHERE (main OR metric = {metric}) AND unit IN (SELECT unit FROM run WHERE metric = {metric}) AND ({since} = '' OR day >= {since}) GROUP BY project, metric),
w AS (SELECT project, MAX(middle) AS whole FROM u GROUP BY project),
z AS (SELECT q.project, q.host, q.fn_id, q.mean, m.typical, ROUND(q.mean - m.typical, 0) AS step, (q.mean - m.typical) / GREATEST(1.4826 * d.spread, q.error, SQRT((m.typical + q.weight) * q.weight / q.runs), 0.05 * w.whole, 1.0) AS distance
 FROM q JOIN m ON m.project = q.project AND m.fn_id = q.fn_id JOIN d ON d.project = q.project AND d.fn_id = q.fn_id JOIN w ON w.project = q.project)
SELECT z.host, z.project, f.name, f.module, ROUND(z.mean, 0) AS host_cost, ROUND(z.typical, 0) AS typical_cost, ROUND(z.distance, 2) AS distance
FROM z JOIN fn f ON f.fn_id = z.fn_id WHERE ABS(z.distance) >= 4 ORDER BY ABS(z.step) DESC, z.host, z.project, f.name, f.module LIMIT {limit};
