-- Tables of subscriptions, and of what is published without naming a receiver.
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

PRAGMA user_version = 7;
