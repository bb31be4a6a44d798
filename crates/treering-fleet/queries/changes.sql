-- Days since which functions take another share of a day's cost than before; of eight days or more. The distance is in
-- units of what the days differ by otherwise, and of what sampling alone explains.
WITH t AS (SELECT day, SUM(CAST(run_cost AS DOUBLE)) AS cost, SUM(CAST(samples AS DOUBLE)) AS samples FROM run
 WHERE metric = {metric} AND ({project} = '' OR project = {project}) AND ({since} = '' OR day >= {since}) GROUP BY day HAVING SUM(CAST(run_cost AS DOUBLE)) > 0),
k AS (SELECT c.day, c.fn_id, SUM(CAST(c.self AS DOUBLE)) AS own FROM fcost c
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since}) GROUP BY c.day, c.fn_id),
f1 AS (SELECT DISTINCT c.fn_id FROM fcost c WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since})),
s AS (SELECT f1.fn_id, t.day, t.samples, COALESCE(k.own, 0.0) / t.cost AS share FROM f1 CROSS JOIN t LEFT JOIN k ON k.fn_id = f1.fn_id AND k.day = t.day),
w AS (SELECT fn_id, LEAD(day) OVER (PARTITION BY fn_id ORDER BY day) AS next_day, SUM(share) OVER (PARTITION BY fn_id ORDER BY day ROWS UNBOUNDED PRECEDING) AS sum_before,
 CAST(ROW_NUMBER() OVER (PARTITION BY fn_id ORDER BY day) AS DOUBLE) AS days_before, SUM(share) OVER (PARTITION BY fn_id) AS whole, SUM(share * share) OVER (PARTITION BY fn_id) AS squares,
 CAST(COUNT(*) OVER (PARTITION BY fn_id) AS DOUBLE) AS days, CASE WHEN COUNT(samples) OVER (PARTITION BY fn_id) < COUNT(*) OVER (PARTITION BY fn_id) THEN NULL ELSE AVG(samples) OVER (PARTITION BY fn_id) END AS mean_samples FROM s),
c AS (SELECT fn_id, next_day, days, mean_samples, whole / days AS mean, squares - whole * whole / days AS spread, sum_before / days_before AS mean_before, (whole - sum_before) / GREATEST(days - days_before, 1.0) AS mean_after,
 days / days_before / GREATEST(days - days_before, 1.0) AS parts FROM w WHERE days >= 8 AND days_before >= 2 AND days - days_before >= 2),
g AS (SELECT fn_id, next_day, mean_before, mean_after, mean, spread, parts, days, mean_samples, ROUND((mean_after - mean_before) * (mean_after - mean_before) / parts, 12) AS gain FROM c),
p AS (SELECT fn_id, next_day, mean_before, mean_after, mean, spread, parts, days, mean_samples, gain, ROW_NUMBER() OVER (PARTITION BY fn_id ORDER BY gain DESC, next_day) AS place FROM g),
z AS (SELECT fn_id, next_day, mean_before, mean_after, ROUND(ABS(mean_after - mean_before), 5) AS step, (mean_after - mean_before) / (SQRT(GREATEST(spread - gain, 0.0) / (days - 2) * parts)
 + CASE WHEN mean_samples IS NULL THEN 0.0 ELSE SQRT((mean + 1.0 / GREATEST(mean_samples, 1.0)) / GREATEST(mean_samples, 1.0) * parts) END + 0.0001) AS away FROM p WHERE place = 1)
SELECT f.name, f.module, z.next_day AS since_day, ROUND(z.mean_before, 5) AS share_before, ROUND(z.mean_after, 5) AS share_after, ROUND(z.away, 2) AS distance
FROM z JOIN fn f ON f.fn_id = z.fn_id WHERE ABS(z.away) >= 5 ORDER BY z.step DESC, f.name, f.module, f.kind LIMIT {limit};
