-- Callers of a function, in all programs.
SELECT pf.name AS caller, pf.module AS caller_module, c.project, SUM(CAST(c.self AS DECIMAL(38,0))) AS self_cost, COUNT(*) AS rows_of_runs
FROM cost c JOIN stack s ON s.stack_id = c.stack_id JOIN stack p ON p.stack_id = s.parent_id JOIN fn f ON f.fn_id = s.fn_id JOIN fn pf ON pf.fn_id = p.fn_id
WHERE f.name = {function} AND c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since})
GROUP BY pf.name, pf.module, c.project ORDER BY self_cost DESC, caller, caller_module, c.project LIMIT {limit};
