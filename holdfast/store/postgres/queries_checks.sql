-- What `holdfast check` reads: whole tables, as one moment saw them; see `queries.sql`.

-- === checking ===========================================================================================================

-- name: check_executions
SELECT execution_id, status, closed_at, details, is_blocked, sequence,
    (SELECT count(*) FROM holdfast.executions AS other
     WHERE other.org = executions.org AND other.workflow_id = executions.workflow_id AND other.closed_at IS NULL),
    (SELECT coalesce(sum(events.count), 0) FROM holdfast.events WHERE events.execution = executions.id), org, workflow, code_version,
    (SELECT json_agg(json_build_array(attributes.org, kind, name, value))::text
     FROM holdfast.attributes WHERE attributes.execution_id = executions.execution_id)
FROM holdfast.executions
ORDER BY execution_id;

-- name: check_attributes
SELECT DISTINCT execution_id
FROM holdfast.attributes
WHERE NOT EXISTS (SELECT 1 FROM holdfast.executions WHERE executions.execution_id = attributes.execution_id)
ORDER BY execution_id;

-- name: check_histories
SELECT executions.execution_id, events.first, events.count, events.schema, events.body
FROM holdfast.events
JOIN holdfast.executions ON executions.id = events.execution
ORDER BY executions.execution_id, events.first;

-- name: check_histories_without_row
SELECT DISTINCT execution
FROM holdfast.events
WHERE NOT EXISTS (SELECT 1 FROM holdfast.executions WHERE executions.id = events.execution)
ORDER BY execution;

-- name: check_timers
SELECT timers.execution_id, timers.number, executions.status
FROM holdfast.timers
LEFT JOIN holdfast.executions ON executions.execution_id = timers.execution_id
WHERE executions.closed_at IS NOT NULL OR executions.execution_id IS NULL
ORDER BY timers.execution_id, timers.number;

-- name: check_offers
SELECT activities.execution_id, activities.number, executions.status
FROM holdfast.activities
LEFT JOIN holdfast.executions ON executions.execution_id = activities.execution_id
WHERE executions.closed_at IS NOT NULL OR executions.execution_id IS NULL
ORDER BY activities.execution_id, activities.number;

-- name: check_tasks
SELECT
    tasks.org, tasks.task_id, tasks.execution_id, tasks.number, tasks.workflow, tasks.workflow_id, tasks.name, tasks.queue,
    tasks.state, tasks.version, tasks.assignee, tasks.claimer, tasks.users, tasks.groups, tasks.roles, tasks.priority,
    tasks.due, tasks.follow_up, tasks.business_key, tasks.created_at, tasks.updated_at, tasks.ended_at, tasks.body,
    executions.status, executions.closed_at, (
        SELECT json_agg(json_build_array(kind, value))::text
        FROM holdfast.task_keys
        WHERE task_keys.task_id = tasks.task_id
    )
FROM holdfast.tasks
LEFT JOIN holdfast.executions ON executions.execution_id = tasks.execution_id
ORDER BY tasks.task_id;

-- name: check_task_events
SELECT task_id, sequence, kind, at, actor, groups, body
FROM holdfast.task_events
ORDER BY task_id, sequence;

-- name: check_requests
SELECT org, kind, key, answer
FROM holdfast.requests
WHERE answer IS NOT NULL
ORDER BY org, kind, key;

-- name: check_envelopes
SELECT id, body FROM holdfast.inbox ORDER BY id;
