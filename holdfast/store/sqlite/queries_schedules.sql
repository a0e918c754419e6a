-- Schedules: firing, asking, changing.

-- name: claim_schedules
SELECT org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM schedules
WHERE due <= :due_until AND (:routes IS NULL OR route IN (SELECT value FROM json_each(:routes)))
    AND (org, schedule_id) NOT IN (SELECT value ->> 0, value ->> 1 FROM json_each(:skip))
ORDER BY due, org, schedule_id
LIMIT :limit;

-- name: claim_waiting_schedules
SELECT org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM schedules
WHERE is_waiting AND (org, schedule_id) > (:org, :after)
    AND (:routes IS NULL OR route IN (SELECT value FROM json_each(:routes)))
ORDER BY org, schedule_id
LIMIT :limit;

-- name: find_open_ids
SELECT asked.value ->> 0, asked.value ->> 1
FROM json_each(?) AS asked
WHERE EXISTS (
        SELECT 1 FROM inbox
        WHERE inbox.execution_id = '' AND inbox.workflow_id = asked.value ->> 1 AND inbox.org = asked.value ->> 0
    )
    OR EXISTS (
        SELECT 1 FROM executions
        WHERE executions.org = asked.value ->> 0 AND executions.workflow_id = asked.value ->> 1
            AND executions.closed_at IS NULL
    );

-- name: write_schedules
UPDATE schedules
SET state = :state, due = :due, is_waiting = :is_waiting, route = :route, version = :version, updated_at = :updated_at,
    details = :details
WHERE org = :org AND schedule_id = :schedule_id AND version = :version - 1;

-- name: insert_schedule
INSERT INTO schedules (org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: remove_schedule
DELETE FROM schedules WHERE org = ? AND schedule_id = ? AND version = ?;

-- name: has_schedule
-- Whether a schedule is at this version or a later one: evidence that its change was committed.
SELECT EXISTS (SELECT 1 FROM schedules WHERE org = ? AND schedule_id = ? AND version >= ?);

-- name: find_schedule
SELECT org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM schedules
WHERE org = ? AND schedule_id = ?;

-- name: list_schedules
SELECT org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM schedules
WHERE org = :org AND schedule_id > :after AND (:owner IS NULL OR owner = :owner)
ORDER BY schedule_id
LIMIT :limit;

-- name: look_at_schedules
SELECT min(due), EXISTS (SELECT 1 FROM schedules WHERE is_waiting)
FROM schedules
WHERE due IS NOT NULL AND (:routes IS NULL OR route IN (SELECT value FROM json_each(:routes)))
    AND (org, schedule_id) NOT IN (SELECT value ->> 0, value ->> 1 FROM json_each(:skip));

-- name: check_schedules
SELECT org, schedule_id, state, due, details FROM schedules;
