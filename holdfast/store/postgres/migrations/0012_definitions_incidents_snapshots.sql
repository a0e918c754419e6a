-- The content of deployed files, by the digest of it.
CREATE TABLE holdfast.resources (
    org    text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    name   text NOT NULL,
    kind   text COLLATE "C" NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (org, digest)
);

-- The versions of deployed processes, decisions and forms. Only `state`, `updated_at` and `changed`, the settings number since which
-- it is as it is, ever change.
CREATE TABLE holdfast.definitions (
    org           text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    definition_id text COLLATE "C" NOT NULL,
    version       bigint NOT NULL,
    digest        text COLLATE "C" NOT NULL,
    deployment    text COLLATE "C" NOT NULL,
    deployed_at   bigint NOT NULL,
    state         text COLLATE "C" NOT NULL,
    name          text NOT NULL,
    version_tag   text COLLATE "C" NOT NULL,
    updated_at    bigint NOT NULL,
    changed       bigint NOT NULL,
    details       bytea NOT NULL,
    PRIMARY KEY (org, kind, definition_id, version)
);

CREATE INDEX definitions_by_change ON holdfast.definitions (changed);
CREATE INDEX definitions_by_digest ON holdfast.definitions (org, digest);
CREATE INDEX definitions_by_deployment ON holdfast.definitions (org, deployment);
CREATE INDEX definitions_undeployed ON holdfast.definitions (updated_at) WHERE state = 'undeployed';

CREATE INDEX starts_of_deployments ON holdfast.starts (org, workflow) WHERE node = '';

-- What is open in executions and waits for somebody to correct it: it repeats their histories, for lists.
CREATE TABLE holdfast.incidents (
    execution_id text COLLATE "C" NOT NULL,
    number       bigint NOT NULL,
    org          text COLLATE "C" NOT NULL,
    workflow     text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    element      text COLLATE "C" NOT NULL,
    element_name text NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    message      text NOT NULL,
    at           bigint NOT NULL,
    PRIMARY KEY (execution_id, number)
);

CREATE INDEX incidents_by_org ON holdfast.incidents (org, execution_id, number);
CREATE INDEX incidents_by_workflow ON holdfast.incidents (org, workflow, execution_id, number);

-- What the histories of open executions amount to up to a sequence: a cache, replaced in place.
CREATE TABLE holdfast.snapshots (
    execution_id text COLLATE "C" PRIMARY KEY,
    org          text COLLATE "C" NOT NULL,
    sequence     bigint NOT NULL,
    schema       integer NOT NULL,
    body         bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- What belongs to executions goes with them, whichever version removes them.
CREATE OR REPLACE FUNCTION holdfast.remove_belongings() RETURNS trigger LANGUAGE plpgsql AS $$
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
    DELETE FROM holdfast.attributes WHERE execution_id = ANY (ARRAY(SELECT execution_id FROM gone));
    DELETE FROM holdfast.incidents WHERE execution_id = ANY (ARRAY(SELECT execution_id FROM gone));
    DELETE FROM holdfast.snapshots WHERE execution_id = ANY (ARRAY(SELECT execution_id FROM gone));
    RETURN NULL;
END
$$;
