-- Open work that nobody has touched for a long time; see `holdfast/store/stale.py` for what is stale.

-- name: find_stale_executions
-- The last row of the page comes in any case: there the next page begins.
WITH page AS MATERIALIZED (
    SELECT org, execution_id, workflow_id, workflow, queue, status, state_version, updated_at, nodes
    FROM holdfast.executions
    WHERE (closed_at IS NULL) IS TRUE
        AND execution_id > $1
        AND execution_id < $2
    ORDER BY execution_id
    LIMIT $3
), judged AS (
    SELECT page.*, (
        page.updated_at < $4::bigint
        AND ($5::text IS NULL OR page.org = $5::text)
        AND page.status IN ('running', 'suspended')
        AND page.nodes IS NULL
        AND NOT EXISTS (SELECT 1 FROM holdfast.timers WHERE timers.execution_id = page.execution_id)
        AND NOT EXISTS (SELECT 1 FROM holdfast.activities WHERE activities.execution_id = page.execution_id)
        AND NOT EXISTS (SELECT 1 FROM holdfast.inbox WHERE inbox.execution_id = page.execution_id)
        AND NOT EXISTS (
            SELECT 1
            FROM holdfast.inbox
            WHERE inbox.execution_id = '' AND inbox.workflow_id = page.workflow_id AND inbox.org = page.org
        )
        AND NOT EXISTS (
            SELECT 1
            FROM holdfast.executions AS child
            WHERE child.parent_id = page.execution_id AND (child.closed_at IS NULL) IS TRUE
        )
        AND NOT EXISTS (
            SELECT 1
            FROM holdfast.tasks
            WHERE tasks.execution_id = page.execution_id AND tasks.ended_at IS NULL
        )
        AND NOT EXISTS (
            SELECT 1
            FROM holdfast.pauses
            WHERE pauses.org = page.org
                AND pauses.kind IN ('workflow', 'queue')
                AND pauses.name = CASE pauses.kind WHEN 'workflow' THEN page.workflow ELSE page.queue END
                AND (pauses.ended_at IS NULL OR pauses.ended_at >= $4::bigint)
        )
    ) AS is_stale
    FROM page
)
SELECT org, execution_id, workflow_id, workflow, queue, status, state_version, updated_at, is_stale,
       (SELECT count(*) FROM page)
FROM judged
WHERE is_stale OR execution_id = (SELECT max(execution_id) FROM page)
ORDER BY execution_id;

-- name: find_stale_tasks
-- The last row of the page comes in any case: there the next page begins.
WITH page AS MATERIALIZED (
    SELECT org, task_id, execution_id, number, workflow, workflow_id, queue, name, state, version, updated_at, due
    FROM holdfast.tasks
    WHERE ended_at IS NULL
        AND (org, task_id) > ($1, $2)
        AND org <= $3
    ORDER BY org, task_id
    LIMIT $4
), judged AS (
    SELECT page.*, (
        page.updated_at < $5::bigint
        AND (page.due IS NULL OR page.due <= $6::bigint)
        AND NOT EXISTS (
            SELECT 1
            FROM holdfast.timers
            WHERE timers.execution_id = page.execution_id AND timers.number = page.number
        )
        AND EXISTS (
            SELECT 1
            FROM holdfast.executions
            WHERE executions.execution_id = page.execution_id AND executions.status IN ('running', 'suspended')
                AND NOT EXISTS (
                    SELECT 1
                    FROM holdfast.pauses
                    WHERE pauses.org = executions.org
                        AND pauses.kind IN ('workflow', 'queue')
                        AND pauses.name = CASE pauses.kind WHEN 'workflow' THEN executions.workflow ELSE executions.queue END
                        AND (pauses.ended_at IS NULL OR pauses.ended_at >= $5::bigint)
                )
        )
        AND NOT EXISTS (SELECT 1 FROM holdfast.inbox WHERE inbox.execution_id = page.execution_id)
    ) AS is_stale
    FROM page
)
SELECT org, task_id, execution_id, number, workflow, workflow_id, queue, name, state, version, updated_at, is_stale,
       (SELECT count(*) FROM page)
FROM judged
WHERE is_stale OR (org, task_id) = (SELECT org, task_id FROM page ORDER BY org DESC, task_id DESC LIMIT 1)
ORDER BY org, task_id;
