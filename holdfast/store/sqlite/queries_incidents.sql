-- Open incidents and snapshots of executions.

-- part: incident_columns
SELECT incidents.org, incidents.execution_id, incidents.number, incidents.workflow, incidents.workflow_id, incidents.element,
       incidents.element_name, incidents.kind, incidents.message, incidents.at

-- part: incident_conditions
    AND incidents.org = :org
    AND (:workflow IS NULL OR incidents.workflow = :workflow)
    AND (:execution_id IS NULL OR incidents.execution_id = :execution_id)
    AND (:workflow_id IS NULL OR incidents.workflow_id = :workflow_id)
    AND (:element IS NULL OR incidents.element = :element)
    AND (:kind IS NULL OR incidents.kind = :kind)
    AND (incidents.execution_id, incidents.number) > (:after_id, :after_number)
ORDER BY incidents.execution_id, incidents.number
LIMIT :limit

-- === writing ============================================================================================================

-- name: put_incidents
INSERT OR REPLACE INTO incidents (org, execution_id, number, workflow, workflow_id, element, element_name, kind, message, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_incidents
DELETE FROM incidents
WHERE execution_id = ? AND number = ?;

-- name: end_all_incidents
DELETE FROM incidents
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: put_snapshots
-- In the place of the one before.
INSERT INTO snapshots (org, execution_id, sequence, schema, body)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (execution_id) DO UPDATE
SET org = excluded.org, sequence = excluded.sequence, schema = excluded.schema, body = excluded.body;

-- name: end_snapshots
DELETE FROM snapshots
WHERE execution_id IN (SELECT value FROM json_each(?));

-- === asking =============================================================================================================

-- name: read_snapshots
SELECT org, execution_id, sequence, schema, body
FROM snapshots
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: list_incidents
-- Only those of executions that are open; so in all of these.
-- with: incident_columns
FROM incidents INDEXED BY incidents_by_org
CROSS JOIN executions ON executions.execution_id = incidents.execution_id AND executions.closed_at IS NULL
WHERE true
-- with: incident_conditions

-- name: list_incidents_of_workflow
-- with: incident_columns
FROM incidents INDEXED BY incidents_by_workflow
CROSS JOIN executions ON executions.execution_id = incidents.execution_id AND executions.closed_at IS NULL
WHERE incidents.workflow = :workflow
-- with: incident_conditions

-- name: list_incidents_of_workflow_id
-- At most one execution is open under it.
-- with: incident_columns
FROM executions
CROSS JOIN incidents ON incidents.execution_id = executions.execution_id
WHERE executions.org = :org AND executions.workflow_id = :workflow_id AND executions.closed_at IS NULL
-- with: incident_conditions

-- name: list_incidents_of_execution
-- with: incident_columns
FROM executions
CROSS JOIN incidents ON incidents.execution_id = executions.execution_id
WHERE executions.execution_id = :execution_id AND executions.closed_at IS NULL
-- with: incident_conditions

-- === removing ===========================================================================================================

-- name: purge_incidents
DELETE FROM incidents
WHERE execution_id IN (
    SELECT executions.execution_id
    FROM json_each(?) AS ended
    CROSS JOIN executions ON executions.id = ended.value
);

-- name: purge_snapshots
DELETE FROM snapshots
WHERE execution_id IN (
    SELECT executions.execution_id
    FROM json_each(?) AS ended
    CROSS JOIN executions ON executions.id = ended.value
);

-- === checking ===========================================================================================================

-- name: check_incidents
SELECT incidents.execution_id, incidents.number, executions.status, executions.closed_at, executions.org = incidents.org
FROM incidents
LEFT JOIN executions ON executions.execution_id = incidents.execution_id;

-- name: check_snapshots
SELECT
    snapshots.execution_id, snapshots.sequence, snapshots.schema, snapshots.body,
    executions.status, executions.closed_at, executions.sequence, executions.org = snapshots.org
FROM snapshots
LEFT JOIN executions ON executions.execution_id = snapshots.execution_id;
