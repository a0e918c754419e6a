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
PRAGMA user_version = 11;
