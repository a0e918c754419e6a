-- Human tasks: their rows, the keys by which lists find them, and what happened to each.

-- name: put_tasks
INSERT INTO tasks (
    org, task_id, execution_id, number, workflow, workflow_id, name, queue, state, version, assignee, claimer, users,
    groups, roles, priority, due, follow_up, business_key, created_at, updated_at, ended_at, body
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_task_keys
INSERT INTO task_keys (task_id, kind, value, org, is_open, due) VALUES (?, ?, ?, ?, ?, ?);

-- name: put_task_events
INSERT INTO task_events (task_id, sequence, kind, at, actor, groups, body) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: read_open_task
SELECT
    tasks.org, tasks.task_id, tasks.execution_id, tasks.number, tasks.workflow, tasks.workflow_id, tasks.name, tasks.queue,
    tasks.state, tasks.version, tasks.assignee, tasks.claimer, tasks.users, tasks.groups, tasks.roles, tasks.priority,
    tasks.due, tasks.follow_up, tasks.business_key, tasks.created_at, tasks.updated_at, tasks.ended_at, tasks.body
FROM tasks
WHERE execution_id = ? AND number = ? AND ended_at IS NULL;

-- name: change_task
UPDATE tasks
SET state = ?, version = ?, assignee = ?, claimer = ?, users = ?, groups = ?, priority = ?, due = ?, follow_up = ?,
    updated_at = ?, ended_at = ?, body = ?
WHERE org = ? AND task_id = ? AND version = ?;

-- name: remove_task_keys
DELETE FROM task_keys WHERE task_id = ?;

-- name: has_task_event
SELECT EXISTS (SELECT 1 FROM task_events WHERE task_id = ? AND sequence = ? AND kind = ? AND actor = ? AND at = ?);

-- name: find_task
SELECT
    tasks.org, tasks.task_id, tasks.execution_id, tasks.number, tasks.workflow, tasks.workflow_id, tasks.name, tasks.queue,
    tasks.state, tasks.version, tasks.assignee, tasks.claimer, tasks.users, tasks.groups, tasks.roles, tasks.priority,
    tasks.due, tasks.follow_up, tasks.business_key, tasks.created_at, tasks.updated_at, tasks.ended_at, tasks.body
FROM tasks
WHERE org = ? AND task_id = ?;

-- name: list_task_events
SELECT task_events.task_id, sequence, kind, at, actor, task_events.groups, task_events.body
FROM task_events
INNER JOIN tasks ON tasks.task_id = task_events.task_id
WHERE tasks.org = ? AND task_events.task_id = ?
ORDER BY sequence;

-- name: purge_task_events
DELETE FROM task_events
WHERE task_id IN (
    SELECT task_id FROM tasks
    WHERE execution_id IN (SELECT execution_id FROM executions WHERE id IN (SELECT value FROM json_each(?)))
);

-- name: purge_task_keys
DELETE FROM task_keys
WHERE task_id IN (
    SELECT task_id FROM tasks
    WHERE execution_id IN (SELECT execution_id FROM executions WHERE id IN (SELECT value FROM json_each(?)))
);

-- name: purge_tasks
DELETE FROM tasks
WHERE execution_id IN (SELECT execution_id FROM executions WHERE id IN (SELECT value FROM json_each(?)));

-- part: task_columns
SELECT
    tasks.org, tasks.task_id, tasks.execution_id, tasks.number, tasks.workflow, tasks.workflow_id, tasks.name, tasks.queue,
    tasks.state, tasks.version, tasks.assignee, tasks.claimer, tasks.users, tasks.groups, tasks.roles, tasks.priority,
    tasks.due, tasks.follow_up, tasks.business_key, tasks.created_at, tasks.updated_at, tasks.ended_at, tasks.body

-- part: task_conditions
    AND (:states IS NULL OR tasks.state IN (SELECT value FROM json_each(:states)))
    AND (:assignee IS NULL OR tasks.assignee = :assignee)
    AND (:claimer IS NULL OR tasks.claimer = :claimer)
    AND (:name IS NULL OR tasks.name = :name)
    AND (:workflow IS NULL OR tasks.workflow = :workflow)
    AND (:execution IS NULL OR tasks.execution_id = :execution)
    AND (:queue IS NULL OR tasks.queue = :queue)
    AND (:business IS NULL OR tasks.business_key = :business)
    AND (:due_before IS NULL OR tasks.due < :due_before)
    AND (
        :group IS NULL
        OR EXISTS (
            SELECT 1 FROM task_keys AS key WHERE key.task_id = tasks.task_id AND key.kind = 'group' AND key.value = :group
        )
    )
    AND (
        :user IS NULL
        OR EXISTS (
            SELECT 1 FROM task_keys AS key WHERE key.task_id = tasks.task_id AND key.kind = 'user' AND key.value = :user
        )
    )

-- name: list_tasks
-- In the order of creation, ended ones too: ids grow with time.
-- with: task_columns
FROM tasks
WHERE tasks.org = :org AND tasks.task_id > :after
-- with: task_conditions
ORDER BY tasks.task_id
LIMIT :limit;

-- name: list_tasks_open
-- with: task_columns
FROM tasks
WHERE tasks.org = :org AND tasks.ended_at IS NULL AND tasks.task_id > :after
-- with: task_conditions
ORDER BY tasks.task_id
LIMIT :limit;

-- name: list_tasks_by_due
-- Open ones by their due date: behind the (date, id) of the page before.
-- with: task_columns
FROM tasks
WHERE tasks.org = :org AND tasks.ended_at IS NULL AND tasks.due IS NOT NULL
    AND (tasks.due, tasks.task_id) > (:after_due, :after)
-- with: task_conditions
ORDER BY tasks.due, tasks.task_id
LIMIT :limit;

-- name: list_tasks_of
-- Those that a key leads to.
-- with: task_columns
FROM task_keys AS lead
INNER JOIN tasks ON tasks.task_id = lead.task_id
WHERE lead.org = :org AND lead.kind = :kind AND lead.value = :value AND lead.task_id > :after
-- with: task_conditions
ORDER BY lead.task_id
LIMIT :limit;

-- name: list_tasks_open_of
-- Named, since SQLite takes the index of all for as good: ended tasks would be walked, too.
-- with: task_columns
FROM task_keys AS lead INDEXED BY task_keys_open
INNER JOIN tasks ON tasks.task_id = lead.task_id
WHERE lead.org = :org AND lead.kind = :kind AND lead.value = :value AND lead.is_open AND lead.task_id > :after
-- with: task_conditions
ORDER BY lead.task_id
LIMIT :limit;

-- name: list_tasks_by_due_of
-- with: task_columns
FROM task_keys AS lead
INNER JOIN tasks ON tasks.task_id = lead.task_id
WHERE lead.org = :org AND lead.kind = :kind AND lead.value = :value
    AND lead.is_open AND lead.due IS NOT NULL AND (lead.due, lead.task_id) > (:after_due, :after)
-- with: task_conditions
ORDER BY lead.due, lead.task_id
LIMIT :limit;
