-- Hosts that spend another share in a function than most hosts of the same project do: distances from the median, in
-- units of the hosts' own spread and of what sampling alone explains, of the host or of a typical one.
WITH h AS (SELECT r.project, r.host, c.fn_id, SUM(CAST(c.self AS DOUBLE)) AS own FROM fcost c JOIN run r ON r.run_id = c.run_id AND r.metric = c.metric
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since}) GROUP BY r.project, r.host, c.fn_id),
n AS (SELECT project, host, SUM(CAST(run_cost AS DOUBLE)) AS cost, SUM(CAST(samples AS DOUBLE)) AS samples FROM run
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since}) GROUP BY project, host HAVING SUM(CAST(run_cost AS DOUBLE)) > 0),
k AS (SELECT project, COUNT(*) AS hosts, MEDIAN(samples) AS samples FROM n GROUP BY project HAVING COUNT(*) >= 5),
f1 AS (SELECT DISTINCT h.project, h.fn_id FROM h JOIN k ON k.project = h.project),
q AS (SELECT n.project, n.host, f1.fn_id, COALESCE(h.own, 0.0) / n.cost AS share, CASE WHEN n.samples > k.samples THEN k.samples ELSE n.samples END AS samples FROM f1 JOIN k ON k.project = f1.project JOIN n ON n.project = f1.project LEFT JOIN h ON h.project = n.project AND h.host = n.host AND h.fn_id = f1.fn_id),
m AS (SELECT project, fn_id, MEDIAN(share) AS typical FROM q GROUP BY project, fn_id),
d AS (SELECT q.project, q.fn_id, MEDIAN(ABS(q.share - m.typical)) AS spread FROM q JOIN m ON m.project = q.project AND m.fn_id = q.fn_id GROUP BY q.project, q.fn_id),
z AS (SELECT q.project, q.host, q.fn_id, q.share, m.typical, (q.share - m.typical) / (1.4826 * d.spread + CASE WHEN q.samples IS NULL THEN 0.0 ELSE SQRT((m.typical + 1.0 / GREATEST(q.samples, 1.0)) / GREATEST(q.samples, 1.0)) END + 0.0001) AS distance
 FROM q JOIN m ON m.project = q.project AND m.fn_id = q.fn_id JOIN d ON d.project = q.project AND d.fn_id = q.fn_id)
SELECT z.host, z.project, f.name, f.module, ROUND(z.share, 5) AS host_share, ROUND(z.typical, 5) AS typical_share, ROUND(z.distance, 2) AS distance
FROM z JOIN fn f ON f.fn_id = z.fn_id WHERE ABS(z.distance) >= 4 ORDER BY ABS(ROUND(z.distance, 2)) DESC, z.host, f.name, f.module LIMIT {limit};
