-- Pauses of workflows and queues.

-- === pauses =============================================================================================================

-- name: read_pauses
SELECT org, kind, name, at, by, reason FROM pauses WHERE ended_at IS NULL ORDER BY org, kind, name;

-- name: read_settings
SELECT coalesce((SELECT number FROM settings WHERE id = 1), 0);

-- name: has_settings
SELECT EXISTS (SELECT 1 FROM settings WHERE id = 1 AND number = ?);

-- name: put_pause
INSERT INTO pauses (org, kind, name, at, by, reason)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (org, kind, name) DO UPDATE
SET at = excluded.at, by = excluded.by, reason = excluded.reason, ended_at = NULL
WHERE pauses.ended_at IS NOT NULL;

-- name: end_pause
-- When it ended is kept: see `find_stale_executions`.
UPDATE pauses
SET ended_at = :at
WHERE org = :org AND kind = :kind AND name = :name AND ended_at IS NULL;

-- name: raise_settings
INSERT INTO settings (id, number)
VALUES (1, max(1, ?))
ON CONFLICT (id) DO UPDATE
SET number = max(settings.number + 1, excluded.number);
