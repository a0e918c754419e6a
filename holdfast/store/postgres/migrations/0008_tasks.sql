-- Human tasks, open and ended. `users`, `groups` and `roles` are lists in JSON; `body` is JSON of what nothing is searched by.
CREATE TABLE holdfast.tasks (
    org          text COLLATE "C" NOT NULL,
    task_id      text COLLATE "C" PRIMARY KEY,
    execution_id text COLLATE "C" NOT NULL,
    number       bigint NOT NULL,
    workflow     text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    queue        text COLLATE "C" NOT NULL,
    state        text COLLATE "C" NOT NULL,
    version      bigint NOT NULL,
    assignee     text COLLATE "C" NOT NULL,
    claimer      text COLLATE "C" NOT NULL,
    users        text COLLATE "C" NOT NULL,
    groups       text COLLATE "C" NOT NULL,
    roles        text COLLATE "C" NOT NULL,
    priority     bigint NOT NULL,
    due          bigint,
    follow_up    bigint,
    business_key text COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    ended_at     bigint,
    body         bytea NOT NULL
);

CREATE UNIQUE INDEX tasks_by_number ON holdfast.tasks (execution_id, number);
CREATE INDEX tasks_by_org ON holdfast.tasks (org, task_id);
CREATE INDEX tasks_open ON holdfast.tasks (org, task_id) WHERE ended_at IS NULL;
CREATE INDEX tasks_open_by_due ON holdfast.tasks (org, due, task_id) WHERE ended_at IS NULL AND due IS NOT NULL;

-- By whom and for what lists find tasks: assignee, claimer, candidate users and groups, business reference, execution.
CREATE TABLE holdfast.task_keys (
    task_id text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    value   text COLLATE "C" NOT NULL,
    org     text COLLATE "C" NOT NULL,
    is_open boolean NOT NULL,
    due     bigint,
    PRIMARY KEY (task_id, kind, value)
);

CREATE INDEX task_keys_open ON holdfast.task_keys (org, kind, value, task_id) WHERE is_open;
CREATE INDEX task_keys_open_by_due ON holdfast.task_keys (org, kind, value, due, task_id) WHERE is_open AND due IS NOT NULL;
CREATE INDEX task_keys_by_value ON holdfast.task_keys (org, kind, value, task_id);

-- What happened to each task, who did it and when. Rows are only ever added, and go with their execution.
CREATE TABLE holdfast.task_events (
    task_id  text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    at       bigint NOT NULL,
    actor    text COLLATE "C" NOT NULL,
    groups   text COLLATE "C" NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (task_id, sequence)
);

-- What belongs to executions goes with them, whichever version removes them.
CREATE FUNCTION holdfast.remove_belongings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH tasks_gone AS (
        DELETE FROM holdfast.tasks WHERE execution_id = ANY (ARRAY(SELECT execution_id FROM gone)) RETURNING task_id
    ), keys_gone AS (
        DELETE FROM holdfast.task_keys WHERE task_id = ANY (ARRAY(SELECT task_id FROM tasks_gone))
    )
    DELETE FROM holdfast.task_events WHERE task_id = ANY (ARRAY(SELECT task_id FROM tasks_gone));
    DELETE FROM holdfast.subscriptions WHERE execution_id = ANY (ARRAY(SELECT execution_id FROM gone));
    WITH kept AS (
        DELETE FROM holdfast.pending WHERE target = ANY (ARRAY(SELECT execution_id FROM gone)) AND target <> '' RETURNING id
    )
    DELETE FROM holdfast.pending_fields WHERE pending = ANY (ARRAY(SELECT id FROM kept));
    RETURN NULL;
END
$$;

CREATE TRIGGER executions_remove_belongings AFTER DELETE ON holdfast.executions
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION holdfast.remove_belongings();
