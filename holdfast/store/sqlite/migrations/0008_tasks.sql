-- Human tasks, open and ended. `users`, `groups` and `roles` are lists in JSON; `body` is JSON of what nothing is searched by.
CREATE TABLE tasks (
    org          TEXT    NOT NULL,
    task_id      TEXT    PRIMARY KEY NOT NULL,
    execution_id TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    workflow     TEXT    NOT NULL,
    workflow_id  TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    queue        TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    assignee     TEXT    NOT NULL,
    claimer      TEXT    NOT NULL,
    users        TEXT    NOT NULL,
    groups       TEXT    NOT NULL,
    roles        TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    due          INTEGER,
    follow_up    INTEGER,
    business_key TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    body         BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX tasks_by_number ON tasks (execution_id, number);
CREATE INDEX tasks_by_org ON tasks (org, task_id);
CREATE INDEX tasks_open ON tasks (org, task_id) WHERE ended_at IS NULL;
CREATE INDEX tasks_open_by_due ON tasks (org, due, task_id) WHERE ended_at IS NULL AND due IS NOT NULL;

-- By whom and for what lists find tasks: assignee, claimer, candidate users and groups, business reference, execution.
CREATE TABLE task_keys (
    task_id TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    value   TEXT    NOT NULL,
    org     TEXT    NOT NULL,
    is_open INTEGER NOT NULL,
    due     INTEGER,
    PRIMARY KEY (task_id, kind, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_keys_open ON task_keys (org, kind, value, task_id) WHERE is_open;
CREATE INDEX task_keys_open_by_due ON task_keys (org, kind, value, due, task_id) WHERE is_open AND due IS NOT NULL;
CREATE INDEX task_keys_by_value ON task_keys (org, kind, value, task_id);

-- What happened to each task, who did it and when. Rows are only ever added, and go with their execution.
CREATE TABLE task_events (
    task_id  TEXT    NOT NULL,
    sequence INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    actor    TEXT    NOT NULL,
    groups   TEXT    NOT NULL,
    body     BLOB    NOT NULL,
    PRIMARY KEY (task_id, sequence)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 8;
