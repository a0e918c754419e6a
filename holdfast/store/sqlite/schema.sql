-- The whole schema, as a new database gets it. The migrations, run one after the other, must come to the same.
--
-- Bytes written decide the speed: a commit writes every page that it touched. So what is written often lies close together,
-- and nothing is indexed that no query needs.

-- Ours: "hold" in ASCII. A file without it is never touched.
PRAGMA application_id = 1752132708;
-- The number of the last migration.
PRAGMA user_version = 12;

-- One row per execution. `id` counts arrivals: of two executions with one workflow id, the greater is the newer.
-- Columns that tell an execution from others never change; `details` is JSON that no query looks into (see `attributes`). `nodes` is a JSON list of
-- the nodes that hold running activities of it in memory; NULL if there are none.
CREATE TABLE executions (
    id            INTEGER PRIMARY KEY,
    org           TEXT    NOT NULL,
    execution_id  TEXT    NOT NULL,
    workflow_id   TEXT    NOT NULL,
    workflow      TEXT    NOT NULL,
    code_version  TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    state_version INTEGER NOT NULL,
    sequence      INTEGER NOT NULL,
    nodes         TEXT,
    parent_id     TEXT,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    closed_at     INTEGER,
    details       BLOB    NOT NULL,
    last_turn     INTEGER NOT NULL,
    route         TEXT    NOT NULL DEFAULT ''
) STRICT;

-- Without org: histories, timers and envelopes are found by execution id alone, so it must be one of a kind.
CREATE UNIQUE INDEX executions_by_execution_id ON executions (execution_id);
CREATE INDEX executions_by_workflow_id ON executions (org, workflow_id);
CREATE UNIQUE INDEX executions_one_open ON executions (org, workflow_id) WHERE closed_at IS NULL;
-- Lists of what is open, orphaned or blocked must not grow with what has ended.
CREATE INDEX executions_open ON executions (execution_id) WHERE closed_at IS NULL;
CREATE INDEX executions_blocked ON executions (execution_id) WHERE status = 'blocked';
CREATE INDEX executions_by_parent ON executions (parent_id) WHERE parent_id IS NOT NULL;
-- For what is to be removed. Closings append to it, so that those of a batch share a page.
CREATE INDEX executions_closed ON executions (closed_at) WHERE closed_at IS NOT NULL;

-- By what executions are found beside their columns. `kind` says what it is: 'metadata', 'reference' (the key of a business reference, without
-- a name), 'part' (its parts) and 'definition' (the deployed process and its version), which are written when an execution begins; 'state',
-- of which a turn writes what it changes, in a form that sorts as the values do. All go with their execution. Apart from `executions`, so
-- that no index there has a column that a turn changes.
CREATE TABLE attributes (
    org          TEXT NOT NULL,
    kind         TEXT NOT NULL,
    name         TEXT NOT NULL,
    value        TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    PRIMARY KEY (org, kind, name, value, execution_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX attributes_by_execution ON attributes (execution_id);

-- The history: one row per turn, appended whoever's it is, so that a batch of turns touches few pages. A history is read
-- backwards, from `executions.last_turn` by `previous` (0 before the first). `execution` is executions.id.
CREATE TABLE events (
    id        INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL,
    previous  INTEGER NOT NULL,
    first     INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    schema    INTEGER NOT NULL,
    body      BLOB    NOT NULL
) STRICT;

-- `kind` says what is due: a timer of the program, the next attempt of an activity, or the end of an offer's waiting.
CREATE TABLE timers (
    execution_id TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    org          TEXT    NOT NULL,
    due          INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    route        TEXT    NOT NULL DEFAULT '',
    kind         TEXT    NOT NULL DEFAULT 'timer',
    PRIMARY KEY (execution_id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX timers_by_due ON timers (due);

-- AUTOINCREMENT: an id says when a row arrived among all that ever did, so none is used again. `at` is when it was accepted, for
-- people; 0 if that is unknown.
CREATE TABLE inbox (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    org          TEXT    NOT NULL,
    execution_id TEXT    NOT NULL,
    workflow_id  TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    attempts     INTEGER NOT NULL,
    route        TEXT    NOT NULL DEFAULT '',
    at           INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX inbox_by_address ON inbox (execution_id, workflow_id);

CREATE TABLE dead_letters (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    org          TEXT    NOT NULL,
    execution_id TEXT    NOT NULL,
    workflow_id  TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    reason       TEXT    NOT NULL,
    node         TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    attempts     INTEGER NOT NULL
) STRICT;

CREATE INDEX dead_letters_by_org ON dead_letters (org);

-- `answer` is JSON: what a repeated request is answered. NULL where an earlier version remembered it.
CREATE TABLE requests (
    org          TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    execution_id TEXT    NOT NULL,
    sequence     INTEGER,
    expires_at   INTEGER NOT NULL,
    answer       BLOB,
    PRIMARY KEY (org, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_by_expiry ON requests (expires_at);
CREATE INDEX requests_by_execution ON requests (execution_id);

CREATE TABLE nodes (
    node       TEXT    PRIMARY KEY,
    seen_at    INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    has_left   INTEGER NOT NULL DEFAULT 0,
    details    BLOB    NOT NULL DEFAULT x'7b7d'
) STRICT, WITHOUT ROWID;

-- Activities that wait for a node which can run them, or that one has taken. `id` counts them as they came.
CREATE TABLE activities (
    id           INTEGER PRIMARY KEY,
    org          TEXT    NOT NULL,
    execution_id TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    route        TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    node         TEXT
) STRICT;

CREATE UNIQUE INDEX activities_by_number ON activities (execution_id, number);
CREATE INDEX activities_by_node ON activities (node, route);

-- Who does what only one may do at a time.
CREATE TABLE locks (
    name  TEXT    PRIMARY KEY,
    node  TEXT    NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is to be known about the database as a whole, for instance that it was moved.
CREATE TABLE marks (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The input schemas that nodes announce for their workflows, by the digest of their content.
CREATE TABLE input_schemas (
    digest TEXT PRIMARY KEY,
    body   BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- === 7: subscriptions, and what is published without naming a receiver ==================================================

-- What executions wait for, under the number of the command. `fields` names, as a JSON list, by which fields of an event a wait
-- selects, and `lookup` is a short form of their values, or of the correlation key `key`: by both it is found. `conditions` is JSON.
CREATE TABLE subscriptions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    org          TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    execution_id TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    key          TEXT    NOT NULL,
    conditions   TEXT    NOT NULL,
    standing     INTEGER NOT NULL,
    since        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    fields       TEXT    NOT NULL,
    lookup       TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX subscriptions_by_number ON subscriptions (execution_id, number);
CREATE INDEX subscriptions_by_lookup ON subscriptions (org, kind, name, fields, lookup);

-- Messages and events that found nobody, until somebody takes them or they expire. What has a smaller `place` comes first. `start` is
-- the inbox row of what a message starts once nobody is open under the workflow id `start_id`.
CREATE TABLE pending (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    org        TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    item       TEXT    NOT NULL,
    sent_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    target     TEXT    NOT NULL,
    fields     TEXT    NOT NULL,
    start      BLOB,
    place      INTEGER NOT NULL,
    lookup     TEXT    NOT NULL,
    start_id   TEXT    NOT NULL,
    mode       TEXT    NOT NULL
) STRICT;

CREATE INDEX pending_by_lookup ON pending (org, kind, name, lookup, target, place);
CREATE INDEX pending_by_item ON pending (org, kind, name, item);
CREATE INDEX pending_by_expiry ON pending (expires_at);
CREATE INDEX pending_by_target ON pending (target) WHERE target <> '';
CREATE INDEX pending_by_start ON pending (org, start_id, place) WHERE start_id <> '';

-- The fields by which waits select kept events.
CREATE TABLE pending_fields (
    org     TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    field   TEXT    NOT NULL,
    value   TEXT    NOT NULL,
    pending INTEGER NOT NULL,
    PRIMARY KEY (org, name, field, value, pending)
) STRICT, WITHOUT ROWID;

CREATE INDEX pending_fields_by_pending ON pending_fields (pending);

-- What is to be published: the outbox of turns; and, with a list of subscribers, what has yet to reach these.
CREATE TABLE publications (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    org         TEXT    NOT NULL,
    body        BLOB    NOT NULL,
    fields      TEXT    NOT NULL,
    origin      TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    is_returned INTEGER NOT NULL,
    subscribers TEXT
) STRICT;

-- Workflows that are started by what is published, by the node that offers them; empty: by a deployment of the org. What
-- is not in the key comes last: integrity_check of SQLite 3.40 takes it for NULL otherwise.
CREATE TABLE starts (
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    org      TEXT NOT NULL,
    workflow TEXT NOT NULL,
    queue    TEXT NOT NULL,
    version  TEXT NOT NULL,
    node     TEXT NOT NULL,
    route    TEXT NOT NULL,
    PRIMARY KEY (kind, name, org, workflow, queue, version, node)
) STRICT, WITHOUT ROWID;

CREATE INDEX starts_by_node ON starts (node);

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
-- What starts executions at given times, one row each. `due` is when it fires next, NULL if it does not; `details` is JSON that
-- only the engine reads. Whoever fires it puts the starts into the inbox in the same transaction.
CREATE TABLE schedules (
    org         TEXT    NOT NULL,
    schedule_id TEXT    NOT NULL,
    owner       TEXT    NOT NULL DEFAULT '',
    state       TEXT    NOT NULL,
    due         INTEGER,
    is_waiting  INTEGER NOT NULL DEFAULT 0,
    route       TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    details     BLOB    NOT NULL,
    PRIMARY KEY (org, schedule_id)
) STRICT;

CREATE INDEX schedules_by_due ON schedules (due) WHERE due IS NOT NULL;
CREATE INDEX schedules_waiting ON schedules (org, schedule_id) WHERE is_waiting;
CREATE INDEX schedules_by_owner ON schedules (org, owner, schedule_id) WHERE owner <> '';

-- The workflows and queues that are paused, and the number that stands for all of them: it changes with each change.
-- One whose pause is over has `ended_at`: until then nobody was to touch its executions.
CREATE TABLE pauses (
    org      TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    by       TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (org, kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE settings (
    id     INTEGER PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT;

-- Questions to nodes that have the code of an execution: short-lived, and no part of it.
CREATE TABLE questions (
    id           TEXT PRIMARY KEY,
    org          TEXT    NOT NULL,
    execution_id TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    expires_at   INTEGER NOT NULL,
    taken_until  INTEGER NOT NULL DEFAULT 0,
    tries        INTEGER NOT NULL DEFAULT 0,
    answer       BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX questions_by_expiry ON questions (expires_at);

-- === 12: deployed definitions, incidents, snapshots ======================================================================

-- The content of deployed files, by the digest of it.
CREATE TABLE resources (
    org    TEXT NOT NULL,
    digest TEXT NOT NULL,
    name   TEXT NOT NULL,
    kind   TEXT NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (org, digest)
) STRICT;

-- The versions of deployed processes, decisions and forms. Only `state`, `updated_at` and `changed`, the settings number since which
-- it is as it is, ever change.
CREATE TABLE definitions (
    org           TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    definition_id TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    digest        TEXT    NOT NULL,
    deployment    TEXT    NOT NULL,
    deployed_at   INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    version_tag   TEXT    NOT NULL,
    updated_at    INTEGER NOT NULL,
    changed       INTEGER NOT NULL,
    details       BLOB    NOT NULL,
    PRIMARY KEY (org, kind, definition_id, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX definitions_by_change ON definitions (changed);
CREATE INDEX definitions_by_digest ON definitions (org, digest);
CREATE INDEX definitions_by_deployment ON definitions (org, deployment);
CREATE INDEX definitions_undeployed ON definitions (updated_at) WHERE state = 'undeployed';

CREATE INDEX starts_of_deployments ON starts (org, workflow) WHERE node = '';

-- What is open in executions and waits for somebody to correct it: it repeats their histories, for lists.
CREATE TABLE incidents (
    execution_id TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    org          TEXT    NOT NULL,
    workflow     TEXT    NOT NULL,
    workflow_id  TEXT    NOT NULL,
    element      TEXT    NOT NULL,
    element_name TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (execution_id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX incidents_by_org ON incidents (org, execution_id, number);
CREATE INDEX incidents_by_workflow ON incidents (org, workflow, execution_id, number);

-- What the histories of open executions amount to up to a sequence: a cache, replaced in place.
CREATE TABLE snapshots (
    execution_id TEXT    PRIMARY KEY NOT NULL,
    org          TEXT    NOT NULL,
    sequence     INTEGER NOT NULL,
    schema       INTEGER NOT NULL,
    body         BLOB    NOT NULL
) STRICT;
