-- Lists of executions: one statement for each index by which one can be made. Each has all the conditions, whichever leads it, and goes
-- from the newest execution id down. What has no bound is given one beyond all values, so that every range has two ends. A plus sign keeps
-- a condition from leading. What a walk finds comes in its order: to sort it would read the walk to its end.

-- part: execution_columns
-- The columns of ExecutionRow in its order.
SELECT executions.org, executions.execution_id, executions.workflow_id, executions.workflow, executions.code_version,
       executions.queue, executions.status, executions.state_version, executions.sequence, executions.nodes,
       executions.parent_id, executions.created_at, executions.updated_at, executions.closed_at, executions.details,
       executions.route

-- part: list_conditions
-- What a filter may ask for beside the org; the index that leads has looked at some of it already.
    AND (:statuses IS NULL OR executions.status IN (SELECT value FROM json_each(:statuses)))
    AND (:workflow IS NULL OR executions.workflow = :workflow)
    AND (:workflow_id IS NULL OR executions.workflow_id = :workflow_id)
    AND (:parent_id IS NULL OR executions.parent_id = :parent_id)
    AND +executions.workflow_id >= :prefix AND +executions.workflow_id < :prefix_end
    AND executions.created_at >= :created_from AND executions.created_at < :created_until
    AND (:closed_from IS NULL OR (executions.closed_at >= :closed_from AND executions.closed_at < :closed_until))
    AND NOT EXISTS (
        SELECT 1
        FROM json_each(:metadata) AS asked
        WHERE NOT EXISTS (
            SELECT 1
            FROM attributes
            WHERE attributes.org = :org AND attributes.kind = 'metadata' AND attributes.name = asked.key
                AND attributes.value = asked.value AND attributes.execution_id = executions.execution_id
        )
    )
    /* where */

-- part: selected
-- The execution ids in a selection, each once.
        SELECT attributes.execution_id
        FROM json_each(:attributes) AS asked
        CROSS JOIN attributes
        WHERE attributes.org = :org AND attributes.kind = asked.value ->> 0 AND attributes.name = asked.value ->> 1
            AND attributes.value >= asked.value ->> 2 AND attributes.value < asked.value ->> 3
        UNION
        SELECT named.execution_id
        FROM json_each(:workflow_ids) AS asked
        CROSS JOIN executions AS named INDEXED BY executions_by_workflow_id
        WHERE named.org = :org AND named.workflow_id >= asked.value ->> 0 AND named.workflow_id < asked.value ->> 1
        UNION
        SELECT children.execution_id
        FROM json_each(:parents) AS asked
        CROSS JOIN executions AS children INDEXED BY executions_by_parent
        WHERE children.parent_id = asked.value
        UNION
        SELECT asked.value
        FROM json_each(:execution_ids) AS asked

-- name: list_executions
-- Down the index of execution ids, which are ordered by time, until the page is full or so many were looked at.
-- with: execution_columns
FROM (
    SELECT *
    FROM executions INDEXED BY executions_by_execution_id
    WHERE execution_id < :before AND execution_id >= :first_id
    ORDER BY execution_id DESC
    LIMIT :scan
) AS executions
WHERE executions.org = :org
-- with: list_conditions
LIMIT :limit;

-- name: list_open_executions
-- The same, down the index of what is open.
-- with: execution_columns
FROM (
    SELECT *
    FROM executions INDEXED BY executions_open
    WHERE closed_at IS NULL AND execution_id < :before AND execution_id >= :first_id
    ORDER BY execution_id DESC
    LIMIT :scan
) AS executions
WHERE executions.org = :org
-- with: list_conditions
LIMIT :limit;

-- name: list_executions_of_workflow_id
-- with: execution_columns
FROM executions INDEXED BY executions_by_workflow_id
WHERE executions.workflow_id = :workflow_id
    AND executions.org = :org
    AND executions.execution_id < :before AND executions.execution_id >= :first_id
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT :limit;

-- name: list_children
-- with: execution_columns
FROM executions INDEXED BY executions_by_parent
WHERE executions.parent_id = :parent_id
    AND executions.org = :org
    AND executions.execution_id < :before AND executions.execution_id >= :first_id
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT :limit;

-- name: list_executions_by_prefix
-- For a prefix that few workflow ids have: all of them are read.
-- with: execution_columns
FROM executions INDEXED BY executions_by_workflow_id
WHERE executions.org = :org
    AND executions.execution_id < :before AND executions.execution_id >= :first_id
    AND executions.workflow_id >= :prefix AND executions.workflow_id < :prefix_end
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT :limit;

-- name: list_executions_by_end
-- For a range of time in which few executions closed: all of them are read.
-- with: execution_columns
FROM executions INDEXED BY executions_closed
WHERE executions.closed_at IS NOT NULL
    AND executions.closed_at >= :closed_from AND executions.closed_at < :closed_until
    AND executions.org = :org
    AND executions.execution_id < :before AND executions.execution_id >= :first_id
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT :limit;

-- name: list_executions_by_attribute
-- Down the index of one attribute; the others are looked up for each.
-- with: execution_columns
FROM attributes
CROSS JOIN executions ON executions.execution_id = attributes.execution_id
WHERE attributes.org = :org AND attributes.kind = :kind AND attributes.name = :name AND attributes.value = :low
    AND attributes.execution_id < :before AND attributes.execution_id >= :first_id
    AND executions.org = :org
-- with: list_conditions
ORDER BY attributes.execution_id DESC
LIMIT :limit;

-- name: list_few_executions
-- For values and ids that few executions have: those are sorted, and looked at until the page is full.
-- with: execution_columns
FROM (
    SELECT execution_id
    FROM (
-- with: selected
    )
    WHERE execution_id < :before AND execution_id >= :first_id
    ORDER BY execution_id DESC
    LIMIT :most
) AS found
CROSS JOIN executions ON executions.execution_id = found.execution_id
WHERE executions.org = :org
-- with: list_conditions
LIMIT :limit;

-- name: list_few_by_value
-- The same, in the order of an attribute: all are read.
-- with: execution_columns
FROM (
-- with: selected
) AS found
CROSS JOIN attributes AS ordering INDEXED BY attributes_by_execution ON ordering.execution_id = found.execution_id
CROSS JOIN executions ON executions.execution_id = found.execution_id
WHERE ordering.org = :org AND ordering.kind = :kind AND ordering.name = :name
    AND (ordering.value, ordering.execution_id) > (:from_value, :from_id)
    AND (ordering.value, ordering.execution_id) < (:until_value, :until_id)
    AND executions.org = :org
    AND executions.execution_id < :before AND executions.execution_id >= :first_id
-- with: list_conditions
ORDER BY ordering.value DESC, ordering.execution_id DESC
LIMIT :limit;

-- name: list_few_by_closing
-- The same, in the order of the times at which executions closed.
-- with: execution_columns
FROM (
-- with: selected
) AS found
CROSS JOIN executions ON executions.execution_id = found.execution_id
WHERE executions.org = :org
    AND executions.closed_at IS NOT NULL
    AND (executions.closed_at, executions.execution_id) > (:from_value, :from_id)
    AND (executions.closed_at, executions.execution_id) < (:until_value, :until_id)
    AND executions.execution_id < :before AND executions.execution_id >= :first_id
-- with: list_conditions
ORDER BY executions.closed_at DESC, executions.execution_id DESC
LIMIT :limit;

-- name: list_executions_by_value
-- Along the values of one attribute, until the page is full or so many were looked at.
-- with: execution_columns
FROM (
    SELECT value, execution_id
    FROM attributes
    WHERE org = :org AND kind = :kind AND name = :name
        AND (value, execution_id) > (:from_value, :from_id) AND (value, execution_id) < (:until_value, :until_id)
    ORDER BY value DESC, execution_id DESC
    LIMIT :scan
) AS found
CROSS JOIN executions ON executions.execution_id = found.execution_id
WHERE executions.org = :org
    AND executions.execution_id < :before AND executions.execution_id >= :first_id
-- with: list_conditions
LIMIT :limit;

-- name: list_executions_by_closing
-- The same, along the times at which executions closed.
-- with: execution_columns
FROM (
    SELECT *
    FROM executions INDEXED BY executions_closed
    WHERE closed_at IS NOT NULL AND closed_at >= :from_value AND closed_at <= :until_value
        AND (closed_at, execution_id) > (:from_value, :from_id) AND (closed_at, execution_id) < (:until_value, :until_id)
    ORDER BY closed_at DESC, execution_id DESC
    LIMIT :scan
) AS executions
WHERE executions.org = :org
    AND executions.execution_id < :before AND executions.execution_id >= :first_id
-- with: list_conditions
LIMIT :limit;

-- name: find_value_walk_end
SELECT execution_id, value
FROM attributes
WHERE org = :org AND kind = :kind AND name = :name
    AND (value, execution_id) > (:from_value, :from_id) AND (value, execution_id) < (:until_value, :until_id)
ORDER BY value DESC, execution_id DESC
LIMIT 1 OFFSET :scan - 1;

-- name: find_closing_walk_end
SELECT execution_id, closed_at
FROM executions INDEXED BY executions_closed
WHERE closed_at IS NOT NULL AND closed_at >= :from_value AND closed_at <= :until_value
    AND (closed_at, execution_id) > (:from_value, :from_id) AND (closed_at, execution_id) < (:until_value, :until_id)
ORDER BY closed_at DESC, execution_id DESC
LIMIT 1 OFFSET :scan - 1;

-- name: find_walk_end
-- Where a walk down the execution ids ends that looks at so many.
SELECT execution_id
FROM executions INDEXED BY executions_by_execution_id
WHERE execution_id < :before AND execution_id >= :first_id
ORDER BY execution_id DESC
LIMIT 1 OFFSET :scan - 1;

-- name: find_open_walk_end
SELECT execution_id
FROM executions INDEXED BY executions_open
WHERE closed_at IS NULL AND execution_id < :before AND execution_id >= :first_id
ORDER BY execution_id DESC
LIMIT 1 OFFSET :scan - 1;

-- name: probe_prefix
-- How many there are, counted up to a limit: which index is to lead depends on it.
SELECT count(*)
FROM (
    SELECT 1
    FROM executions INDEXED BY executions_by_workflow_id
    WHERE org = :org AND workflow_id >= :prefix AND workflow_id < :prefix_end
    LIMIT :most
);

-- name: probe_closed
SELECT count(*)
FROM (
    SELECT 1
    FROM executions INDEXED BY executions_closed
    WHERE closed_at IS NOT NULL AND closed_at >= :closed_from AND closed_at < :closed_until
    LIMIT :most
);

-- name: probe_selection
SELECT (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM json_each(:attributes) AS asked
        CROSS JOIN attributes
        WHERE attributes.org = :org AND attributes.kind = asked.value ->> 0 AND attributes.name = asked.value ->> 1
            AND attributes.value >= asked.value ->> 2 AND attributes.value < asked.value ->> 3
        LIMIT :most
    )
) + (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM json_each(:workflow_ids) AS asked
        CROSS JOIN executions AS named INDEXED BY executions_by_workflow_id
        WHERE named.org = :org AND named.workflow_id >= asked.value ->> 0 AND named.workflow_id < asked.value ->> 1
        LIMIT :most
    )
) + (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM json_each(:parents) AS asked
        CROSS JOIN executions AS children INDEXED BY executions_by_parent
        WHERE children.parent_id = asked.value
        LIMIT :most
    )
) + json_array_length(:execution_ids);

-- name: read_backlog
-- The first of each kind, up to a limit, whatever there is beyond. What waits for blocked or paused executions is counted apart.
SELECT 'open', org, queue, '', status, count(*), min(created_at)
FROM (
    SELECT org, queue, status, created_at FROM executions INDEXED BY executions_open WHERE closed_at IS NULL ORDER BY execution_id LIMIT :limit
) AS found
GROUP BY org, queue, status
UNION ALL
SELECT 'inbox', found.org, executions.queue, found.route, CASE WHEN executions.status IN ('blocked', 'paused') THEN executions.status ELSE '' END, count(*), min(nullif(found.at, 0))
FROM (SELECT org, execution_id, route, at FROM inbox ORDER BY id LIMIT :limit) AS found
LEFT JOIN executions ON executions.execution_id = found.execution_id
GROUP BY 2, 3, 4, 5
UNION ALL
SELECT 'due', found.org, executions.queue, found.route, CASE WHEN executions.status IN ('blocked', 'paused') THEN executions.status ELSE '' END, count(*), min(found.due)
FROM (
    SELECT org, execution_id, route, due FROM timers WHERE due <= :now ORDER BY due LIMIT :limit
) AS found
LEFT JOIN executions ON executions.execution_id = found.execution_id
GROUP BY 2, 3, 4, 5
UNION ALL
SELECT 'offered', org, NULL, route, '', count(*), NULL
FROM (SELECT org, route FROM activities INDEXED BY activities_by_node WHERE node IS NULL LIMIT :limit) AS found
GROUP BY org, route;
