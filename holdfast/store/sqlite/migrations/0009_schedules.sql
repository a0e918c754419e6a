-- Tables of schedules.

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

PRAGMA user_version = 9;
