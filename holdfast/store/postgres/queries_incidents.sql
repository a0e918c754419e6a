-- Open incidents and snapshots of executions; see `queries.sql` for how statements are written.

-- part: incident_columns
SELECT incidents.org, incidents.execution_id, incidents.number, incidents.workflow, incidents.workflow_id, incidents.element,
       incidents.element_name, incidents.kind, incidents.message, incidents.at

-- part: incident_conditions
    AND incidents.org = $1
    AND ($2::text IS NULL OR incidents.workflow = $2)
    AND ($3::text IS NULL OR incidents.execution_id = $3)
    AND ($4::text IS NULL OR incidents.workflow_id = $4)
    AND ($5::text IS NULL OR incidents.element = $5)
    AND ($6::text IS NULL OR incidents.kind = $6)
    AND (incidents.execution_id, incidents.number) > ($7::text, $8::bigint)
ORDER BY incidents.execution_id, incidents.number
LIMIT $9

-- === writing ============================================================================================================

-- name: put_incidents
INSERT INTO holdfast.incidents (org, execution_id, number, workflow, workflow_id, element, element_name, kind, message, at)
SELECT * FROM unnest(
    $1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[]
)
ON CONFLICT (execution_id, number) DO UPDATE
SET element = excluded.element, element_name = excluded.element_name, kind = excluded.kind, message = excluded.message,
    at = excluded.at;

-- name: end_incidents
DELETE FROM holdfast.incidents
USING unnest($1::text[], $2::bigint[]) AS ended (execution_id, number)
WHERE incidents.execution_id = ended.execution_id AND incidents.number = ended.number;

-- name: put_snapshots
-- In the place of those before.
INSERT INTO holdfast.snapshots (org, execution_id, sequence, schema, body)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::integer[], $5::bytea[])
ON CONFLICT (execution_id) DO UPDATE
SET org = excluded.org, sequence = excluded.sequence, schema = excluded.schema, body = excluded.body;

-- name: end_repairs
-- Incidents and snapshots of executions that close.
WITH snapshots_gone AS (
    DELETE FROM holdfast.snapshots WHERE execution_id = ANY ($1::text[])
)
DELETE FROM holdfast.incidents WHERE execution_id = ANY ($1::text[]);

-- name: put_definition_attributes
-- By these is known which executions a version of a process has.
INSERT INTO holdfast.attributes (org, kind, name, value, execution_id)
SELECT new.org, 'definition', new.name, new.value, new.execution_id
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS new (org, name, value, execution_id)
ON CONFLICT DO NOTHING;

-- === asking =============================================================================================================

-- name: read_snapshots
SELECT org, execution_id, sequence, schema, body
FROM holdfast.snapshots
WHERE execution_id = ANY ($1::text[]);

-- name: list_incidents
-- Only those of executions that are open; so in all of these.
-- with: incident_columns
FROM holdfast.incidents
JOIN holdfast.executions ON executions.execution_id = incidents.execution_id AND (executions.closed_at IS NULL) IS TRUE
WHERE true
-- with: incident_conditions

-- name: list_incidents_of_workflow
-- with: incident_columns
FROM holdfast.incidents
JOIN holdfast.executions ON executions.execution_id = incidents.execution_id AND (executions.closed_at IS NULL) IS TRUE
WHERE incidents.workflow = $2::text
-- with: incident_conditions

-- name: list_incidents_of_workflow_id
-- At most one execution is open under it.
-- with: incident_columns
FROM holdfast.executions
JOIN holdfast.incidents ON incidents.execution_id = executions.execution_id
WHERE executions.org = $1 AND executions.workflow_id = $4::text AND executions.closed_at IS NULL
-- with: incident_conditions

-- name: list_incidents_of_execution
-- with: incident_columns
FROM holdfast.executions
JOIN holdfast.incidents ON incidents.execution_id = executions.execution_id
WHERE executions.execution_id = $3::text AND (executions.closed_at IS NULL) IS TRUE
-- with: incident_conditions

-- === checking ===========================================================================================================

-- name: check_incidents
SELECT incidents.execution_id, incidents.number, executions.status, executions.closed_at, executions.org = incidents.org
FROM holdfast.incidents
LEFT JOIN holdfast.executions ON executions.execution_id = incidents.execution_id
ORDER BY incidents.execution_id, incidents.number;

-- name: check_snapshots
SELECT
    snapshots.execution_id, snapshots.sequence, snapshots.schema, snapshots.body,
    executions.status, executions.closed_at, executions.sequence, executions.org = snapshots.org
FROM holdfast.snapshots
LEFT JOIN holdfast.executions ON executions.execution_id = snapshots.execution_id
ORDER BY snapshots.execution_id;
