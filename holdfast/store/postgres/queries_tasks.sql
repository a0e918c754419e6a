-- Human tasks: their rows, the keys by which lists find them, and what happened to each.

-- === by turns ===========================================================================================================

-- name: put_tasks
INSERT INTO holdfast.tasks (
    org, task_id, execution_id, number, workflow, workflow_id, name, queue, state, version, assignee, claimer, users,
    groups, roles, priority, due, follow_up, business_key, created_at, updated_at, ended_at, body
)
SELECT * FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::bigint[], $17::bigint[],
    $18::bigint[], $19::text[], $20::bigint[], $21::bigint[], $22::bigint[], $23::bytea[]
);

-- name: put_task_keys
INSERT INTO holdfast.task_keys (task_id, kind, value, org, is_open, due)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::bigint[]);

-- name: put_task_events
INSERT INTO holdfast.task_events (task_id, sequence, kind, at, actor, groups, body)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bytea[]);

-- name: lock_open_tasks
-- Who is changing one of them has it: nobody waits.
SELECT
    tasks.org, tasks.task_id, tasks.execution_id, tasks.number, tasks.workflow, tasks.workflow_id, tasks.name, tasks.queue,
    tasks.state, tasks.version, tasks.assignee, tasks.claimer, tasks.users, tasks.groups, tasks.roles, tasks.priority,
    tasks.due, tasks.follow_up, tasks.business_key, tasks.created_at, tasks.updated_at, tasks.ended_at, tasks.body
FROM unnest($1::text[], $2::bigint[]) AS asked (execution_id, number)
INNER JOIN holdfast.tasks ON tasks.execution_id = asked.execution_id AND tasks.number = asked.number
WHERE tasks.ended_at IS NULL
FOR UPDATE OF tasks SKIP LOCKED;

-- name: find_open_tasks
SELECT tasks.execution_id, tasks.number
FROM unnest($1::text[], $2::bigint[]) AS asked (execution_id, number)
INNER JOIN holdfast.tasks ON tasks.execution_id = asked.execution_id AND tasks.number = asked.number
WHERE tasks.ended_at IS NULL;

-- name: change_task
-- One row, if it is at the version before; its keys and its event with it.
WITH changed AS (
    UPDATE holdfast.tasks
    SET state = $3, version = $4, assignee = $5, claimer = $6, users = $7, groups = $8, priority = $9, due = $10,
        follow_up = $11, updated_at = $12, ended_at = $13, body = $14
    WHERE task_id = $2 AND version = $4 - 1 AND (org = $1) IS TRUE
    RETURNING task_id
), told AS (
    INSERT INTO holdfast.task_events (task_id, sequence, kind, at, actor, groups, body)
    SELECT task_id, $4, $15, $16, $17, $18, $19 FROM changed
), dropped AS (
    DELETE FROM holdfast.task_keys AS key
    USING changed
    WHERE key.task_id = changed.task_id
        AND NOT EXISTS (
            SELECT 1 FROM unnest($20::text[], $21::text[]) AS new (kind, value)
            WHERE new.kind = key.kind AND new.value = key.value
        )
), kept AS (
    INSERT INTO holdfast.task_keys (task_id, kind, value, org, is_open, due)
    SELECT changed.task_id, new.kind, new.value, $1, $13::bigint IS NULL, $10
    FROM changed
    CROSS JOIN unnest($20::text[], $21::text[]) AS new (kind, value)
    ON CONFLICT (task_id, kind, value) DO UPDATE SET is_open = excluded.is_open, due = excluded.due
)
SELECT count(*) FROM changed;

-- === by people ==========================================================================================================

-- name: find_task
SELECT
    tasks.org, tasks.task_id, tasks.execution_id, tasks.number, tasks.workflow, tasks.workflow_id, tasks.name, tasks.queue,
    tasks.state, tasks.version, tasks.assignee, tasks.claimer, tasks.users, tasks.groups, tasks.roles, tasks.priority,
    tasks.due, tasks.follow_up, tasks.business_key, tasks.created_at, tasks.updated_at, tasks.ended_at, tasks.body
FROM holdfast.tasks
WHERE tasks.task_id = $2 AND (tasks.org = $1) IS TRUE;

-- name: list_task_events
SELECT task_events.task_id, sequence, kind, at, actor, task_events.groups, task_events.body
FROM holdfast.task_events
INNER JOIN holdfast.tasks ON tasks.task_id = task_events.task_id
WHERE task_events.task_id = $2 AND (tasks.org = $1) IS TRUE
ORDER BY sequence;

-- part: task_columns
SELECT
    tasks.org, tasks.task_id, tasks.execution_id, tasks.number, tasks.workflow, tasks.workflow_id, tasks.name, tasks.queue,
    tasks.state, tasks.version, tasks.assignee, tasks.claimer, tasks.users, tasks.groups, tasks.roles, tasks.priority,
    tasks.due, tasks.follow_up, tasks.business_key, tasks.created_at, tasks.updated_at, tasks.ended_at, tasks.body

-- part: task_conditions
    AND ($2::text[] IS NULL OR tasks.state = ANY ($2::text[]))
    AND ($3::text IS NULL OR tasks.assignee = $3::text)
    AND ($4::text IS NULL OR tasks.claimer = $4::text)
    AND ($7::text IS NULL OR tasks.name = $7::text)
    AND ($8::text IS NULL OR tasks.workflow = $8::text)
    AND ($9::text IS NULL OR tasks.execution_id = $9::text)
    AND ($10::text IS NULL OR tasks.queue = $10::text)
    AND ($11::text IS NULL OR tasks.business_key = $11::text)
    AND ($12::bigint IS NULL OR tasks.due < $12::bigint)
    AND (
        $5::text IS NULL
        OR EXISTS (
            SELECT 1 FROM holdfast.task_keys AS key WHERE key.task_id = tasks.task_id AND key.kind = 'group' AND key.value = $5::text
        )
    )
    AND (
        $6::text IS NULL
        OR EXISTS (
            SELECT 1 FROM holdfast.task_keys AS key WHERE key.task_id = tasks.task_id AND key.kind = 'user' AND key.value = $6::text
        )
    )
    AND ($15::bigint IS NOT NULL) IS NOT NULL AND ($16::text IS NULL) IS NOT NULL AND ($17::text IS NULL) IS NOT NULL

-- name: list_tasks
-- In the order of creation, ended ones too: ids grow with time.
-- with: task_columns
FROM holdfast.tasks
WHERE tasks.org = $1::text AND tasks.task_id > $13::text
-- with: task_conditions
ORDER BY tasks.task_id
LIMIT $14::bigint;

-- name: list_tasks_open
-- with: task_columns
FROM holdfast.tasks
WHERE tasks.org = $1::text AND tasks.ended_at IS NULL AND tasks.task_id > $13::text
-- with: task_conditions
ORDER BY tasks.task_id
LIMIT $14::bigint;

-- name: list_tasks_by_due
-- Open ones by their due date: behind the (date, id) of the page before.
-- with: task_columns
FROM holdfast.tasks
WHERE tasks.org = $1::text AND tasks.ended_at IS NULL AND tasks.due IS NOT NULL
    AND (tasks.due, tasks.task_id) > ($15::bigint, $13::text)
-- with: task_conditions
ORDER BY tasks.due, tasks.task_id
LIMIT $14::bigint;

-- name: list_tasks_of
-- Those that a key leads to.
-- with: task_columns
FROM holdfast.task_keys AS lead
INNER JOIN holdfast.tasks ON tasks.task_id = lead.task_id
WHERE lead.org = $1::text AND lead.kind = $16::text AND lead.value = $17::text AND lead.task_id > $13::text
-- with: task_conditions
ORDER BY lead.task_id
LIMIT $14::bigint;

-- name: list_tasks_open_of
-- with: task_columns
FROM holdfast.task_keys AS lead
INNER JOIN holdfast.tasks ON tasks.task_id = lead.task_id
WHERE lead.org = $1::text AND lead.kind = $16::text AND lead.value = $17::text AND lead.is_open AND lead.task_id > $13::text
-- with: task_conditions
ORDER BY lead.task_id
LIMIT $14::bigint;

-- name: list_tasks_by_due_of
-- with: task_columns
FROM holdfast.task_keys AS lead
INNER JOIN holdfast.tasks ON tasks.task_id = lead.task_id
WHERE lead.org = $1::text AND lead.kind = $16::text AND lead.value = $17::text
    AND lead.is_open AND lead.due IS NOT NULL AND (lead.due, lead.task_id) > ($15::bigint, $13::text)
-- with: task_conditions
ORDER BY lead.due, lead.task_id
LIMIT $14::bigint;
