-- What is looked for after trouble, and what `holdfast check` reads: whole tables; see `queries.sql`.

-- === after an unknown outcome ===========================================================================================

-- name: has_version
SELECT EXISTS (SELECT 1 FROM executions WHERE execution_id = ? AND state_version >= ?);

-- name: has_arrival
SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ?);

-- name: is_taken
SELECT EXISTS (SELECT 1 FROM activities WHERE id = ? AND node IS NOT NULL);

-- name: has_request
SELECT EXISTS (SELECT 1 FROM requests WHERE org = ? AND kind = ? AND key = ?);

-- name: has_dead_letter
SELECT EXISTS (SELECT 1 FROM dead_letters WHERE id = ?);

-- === checking ===========================================================================================================

-- name: check_pages
PRAGMA integrity_check;

-- name: check_executions
SELECT execution_id, status, closed_at, org, workflow, code_version, details, (
    SELECT json_group_array(json_array(attributes.org, kind, name, value))
    FROM attributes
    WHERE attributes.execution_id = executions.execution_id
)
FROM executions
ORDER BY id;

-- name: check_attributes
SELECT DISTINCT execution_id
FROM attributes INDEXED BY attributes_by_execution
WHERE NOT EXISTS (SELECT 1 FROM executions WHERE executions.execution_id = attributes.execution_id)
ORDER BY execution_id;

-- name: check_histories
SELECT executions.execution_id, executions.sequence, executions.last_turn,
       events.id, events.previous, events.first, events.count, events.schema, events.body
FROM executions
LEFT JOIN events ON events.execution = executions.id
ORDER BY executions.id, events.first;

-- name: check_histories_without_row
SELECT DISTINCT execution
FROM events
WHERE execution NOT IN (SELECT id FROM executions);

-- name: check_open_twice
-- The unique index forbids it, so look past the index.
SELECT org, workflow_id, group_concat(execution_id, ', ')
FROM executions NOT INDEXED
WHERE closed_at IS NULL
GROUP BY org, workflow_id
HAVING count(*) > 1;

-- name: check_timers
SELECT timers.execution_id, timers.number, executions.status
FROM timers
LEFT JOIN executions ON executions.execution_id = timers.execution_id
WHERE executions.id IS NULL OR executions.closed_at IS NOT NULL;

-- name: check_offers
SELECT activities.execution_id, activities.number, executions.status
FROM activities
LEFT JOIN executions ON executions.execution_id = activities.execution_id
WHERE executions.id IS NULL OR executions.closed_at IS NOT NULL;

-- name: check_tasks
SELECT
    tasks.org, tasks.task_id, tasks.execution_id, tasks.number, tasks.workflow, tasks.workflow_id, tasks.name, tasks.queue,
    tasks.state, tasks.version, tasks.assignee, tasks.claimer, tasks.users, tasks.groups, tasks.roles, tasks.priority,
    tasks.due, tasks.follow_up, tasks.business_key, tasks.created_at, tasks.updated_at, tasks.ended_at, tasks.body,
    executions.status, executions.closed_at, (
        SELECT json_group_array(json_array(kind, value))
        FROM task_keys
        WHERE task_keys.task_id = tasks.task_id
    )
FROM tasks
LEFT JOIN executions ON executions.execution_id = tasks.execution_id;

-- name: check_task_events
SELECT task_id, sequence, kind, at, actor, groups, body
FROM task_events;

-- name: check_requests
SELECT org, kind, key, answer
FROM requests
WHERE answer IS NOT NULL;

-- name: check_inbox
SELECT id, body
FROM inbox;
