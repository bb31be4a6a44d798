-- Hosts that spend another share in a function than most hosts of the same project do: distances from the share of a typical
-- host, in units of the hosts' own spread and of what sampling alone explains, of the host or of a typical one. Samples are
-- compared by twice their square roots, whose error is one whatever they are. A function that few hosts show is expected as
-- often as the others have it on average. The more hosts and functions are compared, the greater distances chance reaches: it
-- reaches the least one that is named in less than one of a hundred archives. A function of which no host has seven samples
-- cannot reach that distance, and is only counted.
WITH r AS (SELECT run_id, project, host, CAST(run_cost AS DOUBLE) AS cost, CAST(samples AS DOUBLE) AS run_samples FROM run WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since})),
k AS (SELECT project, host, SUM(cost) AS host_cost, SUM(run_samples) AS host_samples, COUNT(*) OVER (PARTITION BY project) AS hosts, COUNT(SUM(run_samples)) OVER (PARTITION BY project) AS sampled_hosts, SUM(SUM(cost)) OVER (PARTITION BY project) AS cost_of_all,
 MEDIAN(SUM(run_samples)) OVER (PARTITION BY project) AS typical_samples FROM r GROUP BY project, host HAVING SUM(cost) > 0),
e AS (SELECT c.fn_id, r.project, r.host, SUM(CAST(c.self AS DOUBLE)) AS own_of_host FROM fcost c JOIN r ON r.run_id = c.run_id
 WHERE c.metric = {metric} AND ({since} = '' OR c.day >= {since}) GROUP BY c.fn_id, r.project, r.host),
f AS (SELECT k.project, e.fn_id, SUM(e.own_of_host) AS own FROM e JOIN k ON k.project = e.project AND k.host = e.host WHERE k.hosts >= 5 GROUP BY k.project, e.fn_id
 HAVING MAX(CASE WHEN k.sampled_hosts < k.hosts THEN 7.0 ELSE e.own_of_host / k.host_cost * k.host_samples END) >= 7.0),
q AS (SELECT k.project, k.host, f.fn_id, CASE WHEN k.host_samples > k.typical_samples THEN k.typical_samples ELSE k.host_samples END AS samples,
 COALESCE(h.own_of_host, 0.0) / k.host_cost AS share, (f.own - COALESCE(h.own_of_host, 0.0)) / (k.cost_of_all - k.host_cost) AS others
 FROM f JOIN k ON k.project = f.project LEFT JOIN e h ON h.fn_id = f.fn_id AND h.project = k.project AND h.host = k.host),
m AS (SELECT project, host, fn_id, samples, share, others, MEDIAN(share) OVER (PARTITION BY project, fn_id) AS typical FROM q),
d AS (SELECT project, host, fn_id, share, typical, CASE WHEN samples IS NULL THEN 0.0001 ELSE 1.0 END AS least,
 CASE WHEN samples IS NULL THEN share - GREATEST(typical, LEAST(share, others)) ELSE 2.0 * (SQRT(share * samples + 0.375) - SQRT(GREATEST(typical, LEAST(share, others)) * samples + 0.375)) END AS by_spread FROM m),
z AS (SELECT project, host, fn_id, share, typical, by_spread / SQRT(POWER(1.4826 * MEDIAN(ABS(by_spread)) OVER (PARTITION BY project, fn_id), 2) + least * least) AS distance FROM d)
SELECT z.host, z.project, f.name, f.module, ROUND(z.share, 5) AS host_share, ROUND(z.typical, 5) AS typical_share, ROUND(z.distance, 2) AS distance FROM z JOIN fn f ON f.fn_id = z.fn_id
WHERE ABS(z.distance) >= (SELECT GREATEST(4.5, SQRT(6.0 + 2.0 * LN(SUM(k.hosts * f.fns) + 1.0))) FROM (SELECT project, MAX(hosts) AS hosts FROM k WHERE hosts >= 5 GROUP BY project) k JOIN (SELECT project, COUNT(DISTINCT fn_id) AS fns FROM fcost
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since}) GROUP BY project) f ON f.project = k.project) ORDER BY ABS(ROUND(z.distance, 2)) DESC, z.host, f.name, f.module, f.kind LIMIT {limit};
