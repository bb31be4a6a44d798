-- Functions that no run had before a day, by what they cost since.
WITH a AS (SELECT c.fn_id, MIN(c.day) AS first_day, SUM(CAST(c.self AS DECIMAL(38,0))) AS self_sum, COUNT(*) AS n FROM fcost c
 WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) GROUP BY c.fn_id)
SELECT f.name, f.module, a.first_day, a.self_sum AS self_cost, a.n AS runs FROM a JOIN fn f ON f.fn_id = a.fn_id
WHERE a.first_day >= {since} AND {since} <> '' ORDER BY a.self_sum DESC, f.name, f.module, f.kind LIMIT {limit};
