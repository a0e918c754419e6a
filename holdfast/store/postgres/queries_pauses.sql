-- Pauses of workflows and queues; see `queries.sql` for how statements are written.

-- === pauses =============================================================================================================

-- name: read_pauses
SELECT org, kind, name, at, by, reason FROM holdfast.pauses WHERE ended_at IS NULL ORDER BY org, kind, name;

-- name: read_settings
SELECT coalesce((SELECT number FROM holdfast.settings WHERE id = 1), 0);

-- name: put_pause
INSERT INTO holdfast.pauses AS stored (org, kind, name, at, by, reason)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (org, kind, name) DO UPDATE
SET at = excluded.at, by = excluded.by, reason = excluded.reason, ended_at = NULL
WHERE stored.ended_at IS NOT NULL
RETURNING 1;

-- name: end_pause
-- When it ended is kept: see `find_stale_executions`.
UPDATE holdfast.pauses
SET ended_at = $4
WHERE org = $1 AND kind = $2 AND name = $3 AND ended_at IS NULL
RETURNING 1;

-- name: raise_settings
INSERT INTO holdfast.settings AS stored (id, number)
VALUES (1, greatest(1, $1::bigint))
ON CONFLICT (id) DO UPDATE
SET number = greatest(stored.number + 1, excluded.number);

-- name: find_writers
-- Other transactions of nodes that have written something, and were under way when the statement before was.
SELECT pid, extract(epoch FROM xact_start)::text
FROM pg_stat_activity
WHERE datname = current_database()
    AND pid <> pg_backend_pid()
    AND backend_xid IS NOT NULL
    AND ($1::text = '' OR application_name = $1::text);
