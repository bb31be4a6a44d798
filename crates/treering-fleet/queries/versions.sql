-- Two versions of a project: each function's share of a run, and the change with its 95 % interval over runs. The interval is
-- Student's, with Welch's degrees of freedom; there is none where a version has a single run.
WITH n AS (SELECT version, CAST(COUNT(*) AS DOUBLE) AS runs FROM run WHERE metric = {metric} AND run_cost > 0 AND ({project} = '' OR project = {project}) AND version IN ({base}, {head}) AND ({since} = '' OR day >= {since}) GROUP BY version),
q AS (SELECT c.version, c.fn_id, CAST(c.total AS DOUBLE) / r.run_cost AS share FROM fcost c JOIN run r ON r.run_id = c.run_id AND r.metric = c.metric
 WHERE c.metric = {metric} AND r.run_cost > 0 AND ({project} = '' OR c.project = {project}) AND c.version IN ({base}, {head}) AND ({since} = '' OR c.day >= {since})),
s AS (SELECT q.version, q.fn_id, SUM(q.share) / MAX(n.runs) AS mean, GREATEST(SUM(q.share * q.share) - SUM(q.share) * SUM(q.share) / MAX(n.runs), 0.0) / GREATEST(MAX(n.runs) - 1, 1) / MAX(n.runs) AS variance,
 MAX(n.runs) AS runs FROM q JOIN n ON n.version = q.version GROUP BY q.version, q.fn_id),
d AS (SELECT s.fn_id, SUM(CASE WHEN s.version = {base} THEN s.mean ELSE 0.0 END) AS base, SUM(CASE WHEN s.version = {head} THEN s.mean ELSE 0.0 END) AS head, SUM(s.variance) AS variance,
 SUM(s.variance * s.variance / GREATEST(s.runs - 1, 1)) AS squares FROM s GROUP BY s.fn_id),
w AS (SELECT fn_id, base, head, SQRT(variance) AS error, CASE WHEN variance > 0 THEN squares / (variance * variance) ELSE 0.0 END AS x FROM d)
SELECT f.name, f.module, ROUND(w.base, 5) AS base_share, ROUND(w.head, 5) AS head_share, ROUND(w.head - w.base, 5) AS change,
 CASE WHEN (SELECT MIN(runs) FROM n) > 1 THEN ROUND((1.96 + (2.3724 + (2.8225 + (2.5559 + 2.995 * w.x) * w.x) * w.x) * w.x) * w.error, 5) END AS plus_minus
FROM w JOIN fn f ON f.fn_id = w.fn_id WHERE (SELECT COUNT(*) FROM n) = CASE WHEN {base} = {head} THEN 1 ELSE 2 END ORDER BY ABS(ROUND(w.head - w.base, 5)) DESC, f.name, f.module, f.kind LIMIT {limit};
