-- Tables of schedules.

-- What starts executions at given times, one row each. `due` is when it fires next, NULL if it does not; `details` is JSON that
-- only the engine reads. Whoever fires it locks the row, and puts the starts into the inbox in the same transaction.
CREATE TABLE holdfast.schedules (
    org         text COLLATE "C" NOT NULL,
    schedule_id text COLLATE "C" NOT NULL,
    owner       text COLLATE "C" NOT NULL DEFAULT '',
    state       text COLLATE "C" NOT NULL,
    due         bigint,
    is_waiting  boolean NOT NULL DEFAULT false,
    route       text COLLATE "C" NOT NULL,
    version     bigint NOT NULL,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    details     bytea NOT NULL,
    PRIMARY KEY (org, schedule_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX schedules_by_due ON holdfast.schedules (route, due) WHERE due IS NOT NULL;
CREATE INDEX schedules_waiting ON holdfast.schedules (org, schedule_id) WHERE is_waiting;
CREATE INDEX schedules_by_owner ON holdfast.schedules (org, owner, schedule_id) WHERE owner <> '';
