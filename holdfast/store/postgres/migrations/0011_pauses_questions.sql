-- The workflows and queues that are paused, and the number that stands for all of them: it changes with each change.
-- One whose pause is over has `ended_at`: until then nobody was to touch its executions.
CREATE TABLE holdfast.pauses (
    org      text COLLATE "C" NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    at       bigint NOT NULL,
    by       text NOT NULL,
    reason   text NOT NULL,
    ended_at bigint,
    PRIMARY KEY (org, kind, name)
);
CREATE TABLE holdfast.settings (
    id     integer PRIMARY KEY,
    number bigint NOT NULL
) WITH (fillfactor = 50);

-- Questions to nodes that have the code of an execution: short-lived, and no part of it.
CREATE TABLE holdfast.questions (
    id           text COLLATE "C" PRIMARY KEY,
    org          text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    body         bytea NOT NULL,
    expires_at   bigint NOT NULL,
    taken_until  bigint NOT NULL DEFAULT 0,
    tries        integer NOT NULL DEFAULT 0,
    answer       bytea
);
CREATE INDEX questions_by_expiry ON holdfast.questions (expires_at);
