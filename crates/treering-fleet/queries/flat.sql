-- Functions by their own cost, over all runs of the selection.
SELECT f.name, f.module, SUM(CAST(c.self AS DECIMAL(38,0))) AS self_cost, SUM(CAST(c.total AS DECIMAL(38,0))) AS total_cost, COUNT(*) AS runs
FROM fcost c JOIN fn f ON f.fn_id = c.fn_id
WHERE c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since})
GROUP BY f.name, f.module, f.kind ORDER BY self_cost DESC, f.name, f.module, f.kind LIMIT {limit};
