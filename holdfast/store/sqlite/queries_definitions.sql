-- Deployed definitions and their content.

-- part: definition_columns
SELECT org, kind, definition_id, version, digest, deployment, deployed_at, state, name, version_tag, updated_at, changed, details
FROM definitions

-- part: definition_conditions
    AND (:kind IS NULL OR kind = :kind)
    AND (:definition_id IS NULL OR definition_id = :definition_id)
    AND (:deployment IS NULL OR deployment = :deployment)
    AND (:digest IS NULL OR digest = :digest)
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (kind, definition_id) >= (:after_kind, :after_id)
    AND NOT (kind = :after_kind AND definition_id = :after_id AND version >= :after_version)
    AND (
        NOT :is_latest_only
        OR (
            state <> 'undeployed'
            AND NOT EXISTS (
                SELECT 1
                FROM definitions AS newer
                WHERE newer.org = definitions.org AND newer.kind = definitions.kind
                    AND newer.definition_id = definitions.definition_id AND newer.version > definitions.version
                    AND newer.state <> 'undeployed'
            )
        )
    )
ORDER BY kind, definition_id, version DESC
LIMIT :limit

-- === deploying ==========================================================================================================

-- name: put_resources
-- What is there stays: it has the same content.
INSERT INTO resources (org, digest, name, kind, data)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: put_definitions
INSERT INTO definitions (
    org, kind, definition_id, version, digest, deployment, deployed_at, state, name, version_tag, updated_at, changed, details
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: change_definitions
UPDATE definitions
SET state = :state, updated_at = :at, changed = :changed
WHERE org = :org AND kind = :kind AND definition_id = :definition_id AND version = :version;

-- name: end_deployed_starts
DELETE FROM starts
WHERE node = '' AND org = ? AND workflow = ?;

-- name: end_schedules
-- Whatever its version.
DELETE FROM schedules WHERE org = ? AND schedule_id = ?;

-- name: put_schedules
-- One that is there is replaced, and its version grows.
INSERT INTO schedules (org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (org, schedule_id) DO UPDATE
SET owner = excluded.owner, state = excluded.state, due = excluded.due, is_waiting = excluded.is_waiting, route = excluded.route,
    version = max(schedules.version + 1, excluded.version), created_at = excluded.created_at, updated_at = excluded.updated_at,
    details = excluded.details;

-- === asking =============================================================================================================

-- name: read_changed_definitions
-- with: definition_columns
WHERE changed > ?
ORDER BY changed, org, kind, definition_id, version
LIMIT ?;

-- name: find_definition_version
-- with: definition_columns
WHERE org = ? AND kind = ? AND definition_id = ? AND version = ?;

-- name: find_definition
-- The newest that is not undeployed.
-- with: definition_columns
WHERE org = :org AND kind = :kind AND definition_id = :definition_id AND state <> 'undeployed'
    AND (:version_tag IS NULL OR version_tag = :version_tag)
    AND (:deployment IS NULL OR deployment = :deployment)
ORDER BY version DESC
LIMIT 1;

-- name: list_definitions
-- Along the key, from where the page before ended.
-- with: definition_columns
WHERE org = :org
-- with: definition_conditions

-- name: list_definition_versions
-- with: definition_columns
WHERE org = :org AND kind = :kind AND definition_id = :definition_id
-- with: definition_conditions

-- name: list_definitions_of_deployment
-- with: definition_columns
INDEXED BY definitions_by_deployment
WHERE org = :org AND deployment = :deployment
-- with: definition_conditions

-- name: list_definitions_of_resource
-- with: definition_columns
INDEXED BY definitions_by_digest
WHERE org = :org AND digest = :digest
-- with: definition_conditions

-- name: read_resource
SELECT org, digest, name, kind, data
FROM resources
WHERE org = ? AND digest = ?;

-- === removing ===========================================================================================================

-- name: purge_definitions
-- Those that were undeployed before and that no execution needs: none is left of any process of their deployment, which may be
-- bound to them.
DELETE FROM definitions
WHERE (org, kind, definition_id, version) IN (
    SELECT org, kind, definition_id, version
    FROM definitions AS old INDEXED BY definitions_undeployed
    WHERE old.state = 'undeployed' AND old.updated_at < ?
        AND NOT EXISTS (
            SELECT 1
            FROM definitions AS bound
            WHERE bound.org = old.org AND bound.deployment = old.deployment AND bound.kind = 'bpmn'
                AND EXISTS (
                    SELECT 1
                    FROM attributes
                    WHERE attributes.org = bound.org AND attributes.kind = 'definition'
                        AND attributes.name = bound.definition_id AND attributes.value = CAST(bound.version AS TEXT)
                )
        )
    ORDER BY old.updated_at
    LIMIT ?
)
RETURNING org, digest;

-- name: purge_resources
-- Those of these that no definition names any more.
DELETE FROM resources
WHERE org = :org AND digest = :digest
    AND NOT EXISTS (SELECT 1 FROM definitions WHERE definitions.org = :org AND definitions.digest = :digest);

-- === checking ===========================================================================================================

-- name: check_definitions
SELECT
    definitions.org, definitions.kind, definitions.definition_id, definitions.version, definitions.digest, definitions.state,
    definitions.changed, definitions.details,
    EXISTS (SELECT 1 FROM resources WHERE resources.org = definitions.org AND resources.digest = definitions.digest)
FROM definitions
ORDER BY definitions.org, definitions.kind, definitions.definition_id, definitions.version;

-- name: check_resources
SELECT org, digest, name, kind, data, EXISTS (
    SELECT 1 FROM definitions WHERE definitions.org = resources.org AND definitions.digest = resources.digest
)
FROM resources;
