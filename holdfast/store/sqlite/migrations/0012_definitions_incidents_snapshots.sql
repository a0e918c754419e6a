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
PRAGMA user_version = 12;
