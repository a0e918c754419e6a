-- Routes, offered activities, nodes that leave, locks of nodes, and the indexes by which old executions and their
-- requests are found.
-- What is there goes by the empty route: anybody may take it.
PRAGMA user_version = 2;

ALTER TABLE executions ADD COLUMN route         TEXT    NOT NULL DEFAULT '';
ALTER TABLE timers ADD COLUMN route        TEXT    NOT NULL DEFAULT '';
ALTER TABLE inbox ADD COLUMN route        TEXT    NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN has_left   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN details    BLOB    NOT NULL DEFAULT x'7b7d';

CREATE INDEX executions_closed ON executions (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX requests_by_execution ON requests (execution_id);

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
