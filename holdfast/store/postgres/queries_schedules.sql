-- Schedules: firing, asking, changing.

-- name: claim_schedules
-- Read again after the lock, as of now: what another node has fired meanwhile is not due any more.
SELECT org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM holdfast.schedules
WHERE due <= $1 AND ($2::text[] IS NULL OR route = ANY($2::text[]))
    AND NOT EXISTS (
        SELECT 1 FROM unnest($3::text[], $4::text[]) AS skipped (org, schedule_id)
        WHERE skipped.org = schedules.org AND skipped.schedule_id = schedules.schedule_id
    )
ORDER BY due, org, schedule_id
LIMIT $5
FOR UPDATE SKIP LOCKED;

-- name: claim_waiting_schedules
SELECT org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM holdfast.schedules
WHERE is_waiting AND (org, schedule_id) > ($2, $3) AND ($1::text[] IS NULL OR route = ANY($1::text[]))
ORDER BY org, schedule_id
LIMIT $4
FOR UPDATE SKIP LOCKED;

-- name: find_open_ids
-- As one moment saw it: a start leaves the inbox by the commit that inserts its execution.
SELECT asked.org, asked.workflow_id
FROM unnest($1::text[], $2::text[]) AS asked (org, workflow_id)
WHERE EXISTS (
        SELECT 1 FROM holdfast.inbox
        WHERE inbox.execution_id = '' AND inbox.workflow_id = asked.workflow_id AND inbox.org = asked.org
    )
    OR EXISTS (
        SELECT 1 FROM holdfast.executions
        WHERE executions.org = asked.org AND executions.workflow_id = asked.workflow_id AND executions.closed_at IS NULL
    );

-- name: write_schedules
UPDATE holdfast.schedules
SET state = new.state, due = new.due, is_waiting = new.is_waiting, route = new.route, version = new.version,
    updated_at = new.updated_at, details = new.details
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::boolean[], $6::text[], $7::bigint[], $8::bigint[], $9::bytea[]
) AS new (org, schedule_id, state, due, is_waiting, route, version, updated_at, details)
WHERE schedules.org = new.org AND schedules.schedule_id = new.schedule_id AND schedules.version = new.version - 1
RETURNING 1;

-- name: insert_schedule
INSERT INTO holdfast.schedules (org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT DO NOTHING
RETURNING 1;

-- name: remove_schedule
DELETE FROM holdfast.schedules WHERE org = $1 AND schedule_id = $2 AND version = $3 RETURNING 1;

-- name: find_schedule
SELECT org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM holdfast.schedules
WHERE org = $1 AND schedule_id = $2;

-- name: list_schedules
SELECT org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM holdfast.schedules
WHERE org = $1 AND schedule_id > $2 AND ($3::text IS NULL OR owner = $3)
ORDER BY schedule_id
LIMIT $4;

-- name: look_at_schedules
-- The first of each route, by its index: a node looks again and again, however many schedules there are. NULL: all routes.
WITH RECURSIVE stored (route) AS (
    SELECT min(route) FROM holdfast.schedules WHERE due IS NOT NULL AND $1::text[] IS NULL
    UNION ALL
    SELECT (SELECT min(next.route) FROM holdfast.schedules AS next WHERE next.due IS NOT NULL AND next.route > stored.route)
    FROM stored
    WHERE stored.route IS NOT NULL
), asked AS (
    SELECT route FROM stored WHERE route IS NOT NULL
    UNION ALL
    SELECT unnest($1::text[])
)
SELECT min(first.due), EXISTS (SELECT 1 FROM holdfast.schedules WHERE is_waiting)
FROM asked
CROSS JOIN LATERAL (
    SELECT schedules.due
    FROM holdfast.schedules
    WHERE schedules.route = asked.route AND schedules.due IS NOT NULL
        AND NOT EXISTS (
            SELECT 1 FROM unnest($2::text[], $3::text[]) AS skipped (org, schedule_id)
            WHERE skipped.org = schedules.org AND skipped.schedule_id = schedules.schedule_id
        )
    ORDER BY schedules.due
    LIMIT 1
) AS first;

-- name: check_schedules
SELECT org, schedule_id, state, due, details FROM holdfast.schedules;
