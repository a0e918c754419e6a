-- The whole schema, as a new database gets it. The migrations, run one after the other, must come to the same.
--
-- Bytes written decide the speed: a commit writes every page that it touched. So what is written often lies close together,
-- and nothing is indexed that no query needs.

-- Ours: "hold" in ASCII. A file without it is never touched.
PRAGMA application_id = 1752132708;
-- The number of the last migration.
PRAGMA user_version = 6;

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

-- By what executions are found beside their columns. `kind` says what it is: 'metadata', which is written when an execution begins and
-- goes with it. Apart from `executions`, so that no index there has a column that a turn changes.
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
