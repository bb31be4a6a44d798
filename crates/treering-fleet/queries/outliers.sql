-- Hosts that spend another share in a function than most hosts of the same project do: distances from the share of a typical
-- host, in units of the hosts' own spread and of what sampling alone explains, of the host or of a typical one. Samples are
-- compared by twice their square roots, whose error is one whatever they are. A function that few hosts show is expected as
-- often as the others have it on average. The more hosts and functions are compared, the greater distances chance reaches.
WITH h AS (SELECT r.project, r.host, c.fn_id, SUM(CAST(c.self AS DOUBLE)) AS own FROM fcost c JOIN run r ON r.run_id = c.run_id AND r.metric = c.metric
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since}) GROUP BY r.project, r.host, c.fn_id),
n AS (SELECT project, host, SUM(CAST(run_cost AS DOUBLE)) AS cost, SUM(CAST(samples AS DOUBLE)) AS samples FROM run
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since}) GROUP BY project, host HAVING SUM(CAST(run_cost AS DOUBLE)) > 0),
k AS (SELECT project, COUNT(*) AS hosts, SUM(cost) AS cost, MEDIAN(samples) AS samples FROM n GROUP BY project HAVING COUNT(*) >= 5),
f1 AS (SELECT h.project, h.fn_id, SUM(h.own) AS own FROM h JOIN k ON k.project = h.project GROUP BY h.project, h.fn_id),
q AS (SELECT n.project, n.host, f1.fn_id, COALESCE(h.own, 0.0) / n.cost AS share, (f1.own - COALESCE(h.own, 0.0)) / (k.cost - n.cost) AS others, CASE WHEN n.samples > k.samples THEN k.samples ELSE n.samples END AS samples
 FROM f1 JOIN k ON k.project = f1.project JOIN n ON n.project = f1.project LEFT JOIN h ON h.project = n.project AND h.host = n.host AND h.fn_id = f1.fn_id),
m AS (SELECT project, fn_id, MEDIAN(share) AS typical FROM q GROUP BY project, fn_id),
e AS (SELECT q.project, q.host, q.fn_id, q.share, m.typical, q.samples, CASE WHEN q.share > m.typical THEN LEAST(q.share, GREATEST(m.typical, q.others)) ELSE m.typical END AS expected
 FROM q JOIN m ON m.project = q.project AND m.fn_id = q.fn_id),
y AS (SELECT project, host, fn_id, share, typical, CASE WHEN samples IS NULL THEN share - expected ELSE 2.0 * (SQRT(share * samples + 0.375) - SQRT(expected * samples + 0.375)) END AS by_spread, CASE WHEN samples IS NULL THEN 0.0001 ELSE 1.0 END AS least FROM e),
d AS (SELECT project, fn_id, 1.4826 * MEDIAN(ABS(by_spread)) AS spread FROM y GROUP BY project, fn_id),
z AS (SELECT y.project, y.host, y.fn_id, y.share, y.typical, y.by_spread / SQRT(d.spread * d.spread + y.least * y.least) AS distance FROM y JOIN d ON d.project = y.project AND d.fn_id = y.fn_id),
c AS (SELECT GREATEST(4.0, SQRT(1.0 + 2.0 * LN(COUNT(*) + 1.0))) AS least FROM z)
SELECT z.host, z.project, f.name, f.module, ROUND(z.share, 5) AS host_share, ROUND(z.typical, 5) AS typical_share, ROUND(z.distance, 2) AS distance
FROM z CROSS JOIN c JOIN fn f ON f.fn_id = z.fn_id WHERE ABS(z.distance) >= c.least ORDER BY ABS(ROUND(z.distance, 2)) DESC, z.host, f.name, f.module LIMIT {limit};
