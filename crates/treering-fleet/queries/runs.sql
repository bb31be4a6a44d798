-- The runs in which a function cost most; each run's profile is in the archive under its name.
SELECT r.run, r.project, r.version, r.host, r.rank, r.day, c.self AS self_cost, c.total AS total_cost, r.run_cost AS whole
FROM fcost c JOIN fn f ON f.fn_id = c.fn_id JOIN run r ON r.run_id = c.run_id AND r.metric = c.metric
WHERE f.name = {function} AND c.metric = {metric} AND ({project} = '' OR c.project = {project}) AND ({since} = '' OR c.day >= {since})
ORDER BY c.self DESC, r.run, f.module, f.kind LIMIT {limit};
