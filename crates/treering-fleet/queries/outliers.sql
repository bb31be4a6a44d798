-- Hosts that spend another share in a function than most hosts of the same project do: distances from the share of a typical
-- host, in units of the hosts' own spread and of what sampling alone explains, of the host or of a typical one. Samples are
-- compared by twice their square roots, whose error is one whatever they are. A function that few hosts show is expected as
-- often as the others have it on average. The more hosts and functions are compared, the greater distances chance reaches: it
-- reaches the least one that is named in less than one of a hundred archives.
WITH r AS (SELECT run_id, project, host, SUM(CAST(run_cost AS DOUBLE)) AS cost, SUM(CAST(samples AS DOUBLE)) AS run_samples, DENSE_RANK() OVER (ORDER BY host, project) AS host_number FROM run
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since}) GROUP BY run_id, project, host),
k AS (SELECT project, host, host_number, SUM(cost) AS host_cost, SUM(run_samples) AS host_samples, COUNT(*) OVER (PARTITION BY project) AS hosts, SUM(SUM(cost)) OVER (PARTITION BY project) AS cost_of_all,
 MEDIAN(SUM(run_samples)) OVER (PARTITION BY project) AS typical_samples FROM r GROUP BY project, host, host_number HAVING SUM(cost) > 0),
f AS (SELECT c.project, c.fn_id, SUM(CAST(c.self AS DOUBLE)) AS own, DENSE_RANK() OVER (ORDER BY c.project, c.fn_id) AS fn_number FROM fcost c
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since}) GROUP BY c.project, c.fn_id),
h AS (SELECT f.fn_number, r.host_number, SUM(CAST(c.self AS DOUBLE)) AS own_of_host FROM fcost c JOIN r ON r.run_id = c.run_id JOIN f ON f.project = c.project AND f.fn_id = c.fn_id
 WHERE c.metric = {metric} AND ({since} = '' OR c.day >= {since}) GROUP BY f.fn_number, r.host_number),
g AS (SELECT k.project, k.host, k.host_number, f.fn_id, f.fn_number, f.own, k.host_cost, k.cost_of_all, CASE WHEN k.host_samples > k.typical_samples THEN k.typical_samples ELSE k.host_samples END AS samples FROM f JOIN k ON k.project = f.project WHERE k.hosts >= 5),
q AS (SELECT g.project, g.host, g.fn_id, g.fn_number, g.samples, COALESCE(h.own_of_host, 0.0) / g.host_cost AS share, (g.own - COALESCE(h.own_of_host, 0.0)) / (g.cost_of_all - g.host_cost) AS others
 FROM g LEFT JOIN h ON h.fn_number = g.fn_number AND h.host_number = g.host_number),
m AS (SELECT project, host, fn_id, fn_number, samples, share, others, MEDIAN(share) OVER (PARTITION BY fn_number) AS typical FROM q),
y AS (SELECT project, host, fn_id, fn_number, share, typical, samples, CASE WHEN share > typical THEN LEAST(share, GREATEST(typical, others)) ELSE typical END AS expected FROM m),
d AS (SELECT project, host, fn_id, fn_number, share, typical, CASE WHEN samples IS NULL THEN 0.0001 ELSE 1.0 END AS least,
 CASE WHEN samples IS NULL THEN share - expected ELSE 2.0 * (SQRT(share * samples + 0.375) - SQRT(expected * samples + 0.375)) END AS by_spread FROM y),
z AS (SELECT project, host, fn_id, share, typical, by_spread / SQRT(POWER(1.4826 * MEDIAN(ABS(by_spread)) OVER (PARTITION BY fn_number), 2) + least * least) AS distance FROM d)
SELECT z.host, z.project, f.name, f.module, ROUND(z.share, 5) AS host_share, ROUND(z.typical, 5) AS typical_share, ROUND(z.distance, 2) AS distance FROM z JOIN fn f ON f.fn_id = z.fn_id
WHERE ABS(z.distance) >= (SELECT GREATEST(4.5, SQRT(6.0 + 2.0 * LN(COUNT(*) + 1.0))) FROM g) ORDER BY ABS(ROUND(z.distance, 2)) DESC, z.host, f.name, f.module, f.kind LIMIT {limit};
