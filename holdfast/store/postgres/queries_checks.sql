-- What `holdfast check` reads: whole tables, as one moment saw them; see `queries.sql`.

-- === checking ===========================================================================================================

-- name: check_executions
SELECT execution_id, status, closed_at, details, is_blocked, sequence,
    (SELECT count(*) FROM holdfast.executions AS other
     WHERE other.org = executions.org AND other.workflow_id = executions.workflow_id AND other.closed_at IS NULL),
    (SELECT coalesce(sum(events.count), 0) FROM holdfast.events WHERE events.execution = executions.id), org,
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
SELECT tasks.task_id, executions.status
FROM holdfast.tasks
LEFT JOIN holdfast.executions ON executions.execution_id = tasks.execution_id
WHERE executions.execution_id IS NULL OR (executions.closed_at IS NOT NULL AND tasks.ended_at IS NULL)
ORDER BY tasks.task_id;

-- name: check_envelopes
SELECT id, body FROM holdfast.inbox ORDER BY id;
