-- Deployed definitions and their content; see `queries.sql` for how statements are written.

-- part: definition_columns
SELECT org, kind, definition_id, version, digest, deployment, deployed_at, state, name, version_tag, updated_at, changed, details
FROM holdfast.definitions

-- part: definition_conditions
    AND ($2::text IS NULL OR kind = $2)
    AND ($3::text IS NULL OR definition_id = $3)
    AND ($4::text IS NULL OR deployment = $4)
    AND ($5::text IS NULL OR digest = $5)
    AND ($6::text[] IS NULL OR state = ANY ($6))
    AND (kind, definition_id) >= ($8::text, $9::text)
    AND NOT (kind = $8 AND definition_id = $9 AND version >= $10::bigint)
    AND (
        NOT $7::boolean
        OR (
            state <> 'undeployed'
            AND NOT EXISTS (
                SELECT 1
                FROM holdfast.definitions AS newer
                WHERE newer.org = definitions.org AND newer.kind = definitions.kind
                    AND newer.definition_id = definitions.definition_id AND newer.version > definitions.version
                    AND newer.state <> 'undeployed'
            )
        )
    )
ORDER BY kind, definition_id, version DESC
LIMIT $11

-- === deploying ==========================================================================================================

-- name: take_settings
-- Raise the settings number, if it is the expected one ($1): whoever deploys or pauses at the same time waits here.
INSERT INTO holdfast.settings AS stored (id, number)
SELECT 1, greatest($1::bigint + 1, $2::bigint)
WHERE $1 = coalesce((SELECT number FROM holdfast.settings WHERE id = 1), 0)
ON CONFLICT (id) DO UPDATE
SET number = excluded.number
WHERE stored.number = $1
RETURNING number;

-- name: put_resources
-- What is there stays: it has the same content.
INSERT INTO holdfast.resources (org, digest, name, kind, data)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[])
ON CONFLICT DO NOTHING;

-- name: put_definitions
INSERT INTO holdfast.definitions (
    org, kind, definition_id, version, digest, deployment, deployed_at, state, name, version_tag, updated_at, changed, details
)
SELECT * FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[],
    $11::bigint[], $12::bigint[], $13::bytea[]
);

-- name: change_definitions
UPDATE holdfast.definitions
SET state = new.state, updated_at = $6, changed = $7
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) AS new (kind, definition_id, version, state)
WHERE definitions.org = $1 AND definitions.kind = new.kind AND definitions.definition_id = new.definition_id
    AND definitions.version = new.version;

-- name: end_deployed_starts
DELETE FROM holdfast.starts
WHERE node = '' AND org = $1 AND workflow = ANY ($2::text[]);

-- name: end_schedules
-- Whatever their versions; whoever fires one of them goes first.
DELETE FROM holdfast.schedules WHERE org = $1 AND schedule_id = ANY ($2::text[]);

-- name: put_schedules
-- One that is there is replaced, and its version grows.
INSERT INTO holdfast.schedules AS stored (
    org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
)
SELECT * FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::boolean[], $7::text[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bytea[]
)
ON CONFLICT (org, schedule_id) DO UPDATE
SET owner = excluded.owner, state = excluded.state, due = excluded.due, is_waiting = excluded.is_waiting, route = excluded.route,
    version = greatest(stored.version + 1, excluded.version), created_at = excluded.created_at,
    updated_at = excluded.updated_at, details = excluded.details;

-- === asking =============================================================================================================

-- name: read_changed_definitions
-- with: definition_columns
WHERE changed > $1
ORDER BY changed, org, kind, definition_id, version
LIMIT $2;

-- name: find_definition_version
-- with: definition_columns
WHERE org = $1 AND kind = $2 AND definition_id = $3 AND version = $4;

-- name: find_definition
-- The newest that is not undeployed.
-- with: definition_columns
WHERE org = $1 AND kind = $2 AND definition_id = $3 AND state <> 'undeployed'
    AND ($4::text IS NULL OR version_tag = $4)
    AND ($5::text IS NULL OR deployment = $5)
ORDER BY version DESC
LIMIT 1;

-- name: list_definitions
-- Along the key, from where the page before ended.
-- with: definition_columns
WHERE org = $1
-- with: definition_conditions

-- name: list_definition_versions
-- with: definition_columns
WHERE org = $1 AND kind = $2::text AND definition_id = $3::text
-- with: definition_conditions

-- name: list_definitions_of_deployment
-- with: definition_columns
WHERE org = $1 AND deployment = $4::text
-- with: definition_conditions

-- name: list_definitions_of_resource
-- with: definition_columns
WHERE org = $1 AND digest = $5::text
-- with: definition_conditions

-- name: read_resource
SELECT org, digest, name, kind, data
FROM holdfast.resources
WHERE org = $1 AND digest = $2;

-- === removing ===========================================================================================================

-- name: has_undeployed
SELECT EXISTS (SELECT 1 FROM holdfast.definitions WHERE state = 'undeployed' AND updated_at < $1);

-- name: hold_settings
-- Against those who deploy: nothing comes back if somebody does.
SELECT number FROM holdfast.settings WHERE id = 1 FOR UPDATE SKIP LOCKED;

-- name: purge_definitions
-- Those that were undeployed before and that no execution needs: none is left of any process of their deployment, which may be
-- bound to them.
DELETE FROM holdfast.definitions
WHERE ctid = ANY (ARRAY(
    SELECT old.ctid
    FROM holdfast.definitions AS old
    WHERE old.state = 'undeployed' AND old.updated_at < $1
        AND (
            SELECT bound.version
            FROM holdfast.definitions AS bound
            WHERE bound.org = old.org AND bound.deployment = old.deployment AND bound.kind = 'bpmn'
                AND (
                    SELECT attributes.execution_id
                    FROM holdfast.attributes
                    WHERE attributes.org = bound.org AND attributes.kind = 'definition'
                        AND attributes.name = bound.definition_id AND attributes.value = bound.version::text
                    LIMIT 1
                ) IS NOT NULL  -- not EXISTS, for which the planner may choose to read all attributes
            LIMIT 1
        ) IS NULL
    ORDER BY old.updated_at
    LIMIT $2
))
RETURNING org, digest;

-- name: purge_resources
-- Those of these that no definition names any more.
DELETE FROM holdfast.resources
USING unnest($1::text[], $2::text[]) AS gone (org, digest)
WHERE resources.org = gone.org AND resources.digest = gone.digest
    AND (
        SELECT definitions.version
        FROM holdfast.definitions
        WHERE definitions.org = gone.org AND definitions.digest = gone.digest
        LIMIT 1
    ) IS NULL;

-- === checking ===========================================================================================================

-- name: check_definitions
SELECT
    definitions.org, definitions.kind, definitions.definition_id, definitions.version, definitions.digest, definitions.state,
    definitions.changed, definitions.details,
    EXISTS (SELECT 1 FROM holdfast.resources WHERE resources.org = definitions.org AND resources.digest = definitions.digest)
FROM holdfast.definitions
ORDER BY definitions.org, definitions.kind, definitions.definition_id, definitions.version;

-- name: check_resources
SELECT org, digest, name, kind, data, EXISTS (
    SELECT 1 FROM holdfast.definitions WHERE definitions.org = resources.org AND definitions.digest = resources.digest
)
FROM holdfast.resources
ORDER BY org, digest;
