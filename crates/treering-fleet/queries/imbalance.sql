-- Ranks of a parallel program: least, mean and greatest cost of each function over ranks, and what the slowest costs all,
-- first those that are slow themselves, rather than in what they call.
WITH k AS (SELECT DISTINCT rank FROM run WHERE rank IS NOT NULL AND metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since})),
n AS (SELECT CAST(COUNT(*) AS DOUBLE) AS ranks FROM k),
h AS (SELECT c.fn_id, r.rank, SUM(CAST(c.total AS DOUBLE)) AS cost, SUM(CAST(c.self AS DOUBLE)) AS own FROM fcost c JOIN run r ON r.run_id = c.run_id AND r.metric = c.metric
 WHERE r.rank IS NOT NULL AND c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since}) GROUP BY c.fn_id, r.rank),
s AS (SELECT h.fn_id, CASE WHEN COUNT(*) < MAX(n.ranks) THEN 0.0 ELSE MIN(h.cost) END AS least, SUM(h.cost) / MAX(n.ranks) AS mean, MAX(h.cost) AS greatest, MAX(h.own) - SUM(h.own) / MAX(n.ranks) AS own_imbalance FROM h CROSS JOIN n GROUP BY h.fn_id),
w AS (SELECT h.fn_id, MIN(h.rank) AS rank FROM h JOIN s ON s.fn_id = h.fn_id AND h.cost = s.greatest GROUP BY h.fn_id)
SELECT f.name, f.module, ROUND(s.least, 0) AS least_cost, ROUND(s.mean, 0) AS mean_cost, ROUND(s.greatest, 0) AS greatest_cost, w.rank AS slowest_rank, ROUND(s.greatest - s.mean, 0) AS imbalance, ROUND(s.own_imbalance, 0) AS self_imbalance
FROM s JOIN w ON w.fn_id = s.fn_id JOIN fn f ON f.fn_id = s.fn_id ORDER BY self_imbalance DESC, imbalance DESC, f.name, f.module, f.kind LIMIT {limit};
