-- Lists of executions: one statement for each index by which one can be made. Each has all the conditions, whichever leads it, and goes
-- from the newest execution id down. What has no bound is given one beyond all values, so that every range has two ends.

-- part: execution_columns
-- The columns of ExecutionRow in its order.
SELECT executions.org, executions.execution_id, executions.workflow_id, executions.workflow, executions.code_version,
       executions.queue, executions.status, executions.state_version, executions.sequence, executions.nodes,
       executions.parent_id, executions.created_at, executions.updated_at, executions.closed_at, executions.details,
       executions.route

-- part: list_conditions
-- What a filter may ask for beside the org; the index that leads has looked at some of it already.
    AND ($4::text[] IS NULL OR executions.status = ANY ($4))
    AND ($5::text IS NULL OR executions.workflow = $5)
    AND ($6::text IS NULL OR executions.workflow_id = $6)
    AND ($7::text IS NULL OR executions.parent_id = $7)
    AND executions.workflow_id >= $8 AND executions.workflow_id < $9
    AND executions.created_at >= $10 AND executions.created_at < $11
    AND ($12::bigint IS NULL OR (executions.closed_at >= $12 AND executions.closed_at < $13))
    AND (
        SELECT count(*)
        FROM unnest($14::text[], $15::text[]) AS asked (name, value)
        JOIN holdfast.attributes
            ON attributes.org = $1 AND attributes.kind = 'metadata' AND attributes.name = asked.name
            AND attributes.value = asked.value AND attributes.execution_id = executions.execution_id
    ) = coalesce(array_length($14, 1), 0)
    /* where */

-- part: selected
-- The execution ids in a selection, each once.
    SELECT attributes.execution_id
    FROM unnest($17::text[], $18::text[], $19::text[], $20::text[]) AS asked (kind, name, low, high)
    CROSS JOIN LATERAL (
        SELECT execution_id
        FROM holdfast.attributes
        WHERE org = $1 AND kind = asked.kind AND name = asked.name AND value >= asked.low AND value < asked.high
        OFFSET 0
    ) AS attributes
    UNION
    SELECT named.execution_id
    FROM unnest($21::text[], $22::text[]) AS asked (low, high)
    CROSS JOIN LATERAL (
        SELECT execution_id FROM holdfast.executions WHERE org = $1 AND workflow_id >= asked.low AND workflow_id < asked.high OFFSET 0
    ) AS named
    UNION
    SELECT children.execution_id
    FROM unnest($23::text[]) AS asked (parent_id)
    CROSS JOIN LATERAL (
        SELECT execution_id FROM holdfast.executions WHERE parent_id = asked.parent_id OFFSET 0
    ) AS children
    UNION
    SELECT asked.execution_id
    FROM unnest($24::text[]) AS asked (execution_id)

-- name: list_executions
-- Down the index of execution ids, which are ordered by time, until the page is full or so many were looked at.
-- with: execution_columns
FROM (
    SELECT *
    FROM holdfast.executions
    WHERE execution_id < $2 AND execution_id >= $3
    ORDER BY execution_id DESC
    LIMIT $17
) AS executions
WHERE executions.org = $1
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT $16;

-- name: list_open_executions
-- The same, down the index of what is open.
-- with: execution_columns
FROM (
    SELECT *
    FROM holdfast.executions
    WHERE (closed_at IS NULL) IS TRUE AND execution_id < $2 AND execution_id >= $3
    ORDER BY execution_id DESC
    LIMIT $17
) AS executions
WHERE executions.org = $1
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT $16;

-- name: list_executions_of_workflow_id
-- with: execution_columns
FROM (
    SELECT *
    FROM holdfast.executions
    WHERE org = $1 AND workflow_id = $6
    OFFSET 0  -- this index leads, whatever the order
) AS executions
WHERE executions.org = $1
    AND executions.execution_id < $2 AND executions.execution_id >= $3
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT $16;

-- name: list_children
-- with: execution_columns
FROM (
    SELECT *
    FROM holdfast.executions
    WHERE parent_id = $7
    OFFSET 0  -- this index leads, whatever the order
) AS executions
WHERE executions.org = $1
    AND executions.execution_id < $2 AND executions.execution_id >= $3
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT $16;

-- name: list_executions_by_prefix
-- For a prefix that few workflow ids have: all of them are read.
-- with: execution_columns
FROM (
    SELECT *
    FROM holdfast.executions
    WHERE org = $1 AND workflow_id >= $8 AND workflow_id < $9
    OFFSET 0  -- this index leads, whatever the order
) AS executions
WHERE executions.org = $1
    AND executions.execution_id < $2 AND executions.execution_id >= $3
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT $16;

-- name: list_executions_by_end
-- For a range of time in which few executions closed: all of them are read.
-- with: execution_columns
FROM (
    SELECT *
    FROM holdfast.executions
    WHERE closed_at IS NOT NULL AND closed_at >= $12 AND closed_at < $13
    OFFSET 0  -- this index leads, whatever the order
) AS executions
WHERE executions.org = $1
    AND executions.execution_id < $2 AND executions.execution_id >= $3
-- with: list_conditions
ORDER BY executions.execution_id DESC
LIMIT $16;

-- name: list_executions_by_attribute
-- Down the index of one attribute; the others are looked up for each.
-- with: execution_columns
FROM (
    SELECT execution_id
    FROM holdfast.attributes
    WHERE org = $1 AND kind = $17 AND name = $18 AND value = $19 AND execution_id < $2 AND execution_id >= $3
    ORDER BY org DESC, kind DESC, name DESC, value DESC, execution_id DESC
    OFFSET 0
) AS found
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.executions WHERE executions.execution_id = found.execution_id OFFSET 0
) AS executions
WHERE executions.org = $1
-- with: list_conditions
ORDER BY found.execution_id DESC
LIMIT $16;

-- name: list_few_executions
-- For values and ids that few executions have: those are sorted, and looked at until the page is full.
-- with: execution_columns
FROM (
    SELECT execution_id
    FROM (
-- with: selected
    ) AS selected
    WHERE execution_id < $2 AND execution_id >= $3
    ORDER BY execution_id DESC
    OFFSET 0
) AS found
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.executions WHERE executions.execution_id = found.execution_id OFFSET 0
) AS executions
WHERE executions.org = $1
-- with: list_conditions
ORDER BY found.execution_id DESC
LIMIT $16;

-- name: list_few_by_value
-- The same, in the order of an attribute: all are read.
-- with: execution_columns
FROM (
    SELECT ordering.value, ordering.execution_id
    FROM (
-- with: selected
    ) AS selected
    CROSS JOIN LATERAL (
        SELECT *
        FROM holdfast.attributes
        WHERE attributes.execution_id = selected.execution_id AND org = $1 AND kind = $25 AND name = $26
        OFFSET 0
    ) AS ordering
    WHERE (ordering.value, ordering.execution_id) > ($27, $28) AND (ordering.value, ordering.execution_id) < ($29, $30)
    ORDER BY ordering.value DESC, ordering.execution_id DESC
    OFFSET 0
) AS found
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.executions WHERE executions.execution_id = found.execution_id OFFSET 0
) AS executions
WHERE executions.org = $1
    AND executions.execution_id < $2 AND executions.execution_id >= $3
-- with: list_conditions
ORDER BY found.value DESC, found.execution_id DESC
LIMIT $16;

-- name: list_few_by_closing
-- The same, in the order of the times at which executions closed.
-- with: execution_columns
FROM (
-- with: selected
) AS found
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.executions WHERE executions.execution_id = found.execution_id OFFSET 0
) AS executions
WHERE executions.org = $1
    AND executions.closed_at IS NOT NULL
    AND (executions.closed_at, executions.execution_id) > ($25, $26)
    AND (executions.closed_at, executions.execution_id) < ($27, $28)
    AND executions.execution_id < $2 AND executions.execution_id >= $3
-- with: list_conditions
ORDER BY executions.closed_at DESC, executions.execution_id DESC
LIMIT $16;

-- name: list_executions_by_value
-- Along the values of one attribute, until the page is full or so many were looked at.
-- with: execution_columns
FROM (
    SELECT value, execution_id
    FROM holdfast.attributes
    WHERE org = $1 AND kind = $18 AND name = $19 AND (value, execution_id) > ($20, $21) AND (value, execution_id) < ($22, $23)
    ORDER BY org DESC, kind DESC, name DESC, value DESC, execution_id DESC
    LIMIT $17
) AS found
CROSS JOIN LATERAL (
    SELECT * FROM holdfast.executions WHERE executions.execution_id = found.execution_id OFFSET 0
) AS executions
WHERE executions.org = $1
    AND executions.execution_id < $2 AND executions.execution_id >= $3
-- with: list_conditions
ORDER BY found.value DESC, found.execution_id DESC
LIMIT $16;

-- name: list_executions_by_closing
-- The same, along the times at which executions closed.
-- with: execution_columns
FROM (
    SELECT *
    FROM holdfast.executions
    WHERE closed_at IS NOT NULL AND closed_at >= $18 AND closed_at <= $20
        AND (closed_at, execution_id) > ($18, $19) AND (closed_at, execution_id) < ($20, $21)
    ORDER BY closed_at DESC, execution_id DESC
    LIMIT $17
) AS executions
WHERE executions.org = $1
    AND executions.execution_id < $2 AND executions.execution_id >= $3
-- with: list_conditions
ORDER BY executions.closed_at DESC, executions.execution_id DESC
LIMIT $16;

-- name: find_value_walk_end
SELECT execution_id, value
FROM holdfast.attributes
WHERE org = $1 AND kind = $2 AND name = $3 AND (value, execution_id) > ($4, $5) AND (value, execution_id) < ($6, $7)
ORDER BY org DESC, kind DESC, name DESC, value DESC, execution_id DESC
LIMIT 1 OFFSET $8 - 1;

-- name: find_closing_walk_end
SELECT execution_id, closed_at
FROM holdfast.executions
WHERE closed_at IS NOT NULL AND closed_at >= $1 AND closed_at <= $3
    AND (closed_at, execution_id) > ($1, $2) AND (closed_at, execution_id) < ($3, $4)
ORDER BY closed_at DESC, execution_id DESC
LIMIT 1 OFFSET $5 - 1;

-- name: find_walk_end
-- Where a walk down the execution ids ends that looks at so many.
SELECT execution_id
FROM holdfast.executions
WHERE execution_id < $1 AND execution_id >= $2
ORDER BY execution_id DESC
LIMIT 1 OFFSET $3 - 1;

-- name: find_open_walk_end
SELECT execution_id
FROM holdfast.executions
WHERE (closed_at IS NULL) IS TRUE AND execution_id < $1 AND execution_id >= $2
ORDER BY execution_id DESC
LIMIT 1 OFFSET $3 - 1;

-- name: probe_prefix
-- How many there are, counted up to a limit: which index is to lead depends on it.
SELECT count(*)
FROM (
    SELECT 1 FROM holdfast.executions WHERE org = $1 AND workflow_id >= $2 AND workflow_id < $3 LIMIT $4
) AS found;

-- name: probe_closed
SELECT count(*)
FROM (
    SELECT 1 FROM holdfast.executions WHERE closed_at IS NOT NULL AND closed_at >= $1 AND closed_at < $2 LIMIT $3
) AS found;

-- name: probe_selection
SELECT (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) AS asked (kind, name, low, high)
        CROSS JOIN LATERAL (
            SELECT 1
            FROM holdfast.attributes
            WHERE org = $1 AND kind = asked.kind AND name = asked.name AND value >= asked.low AND value < asked.high
            LIMIT $2
        ) AS attributes
        LIMIT $2
    ) AS found
) + (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM unnest($7::text[], $8::text[]) AS asked (low, high)
        CROSS JOIN LATERAL (
            SELECT 1 FROM holdfast.executions WHERE org = $1 AND workflow_id >= asked.low AND workflow_id < asked.high LIMIT $2
        ) AS named
        LIMIT $2
    ) AS found
) + (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM unnest($9::text[]) AS asked (parent_id)
        CROSS JOIN LATERAL (
            SELECT 1 FROM holdfast.executions WHERE parent_id = asked.parent_id LIMIT $2
        ) AS children
        LIMIT $2
    ) AS found
) + cardinality($10::text[]);

-- name: read_backlog
-- The first of each kind, up to a limit, whatever there is beyond. What waits for blocked or paused executions is counted apart.
SELECT 'open', org, queue, '', status, count(*), min(created_at)
FROM (
    SELECT org, queue, status, created_at FROM holdfast.executions WHERE (closed_at IS NULL) IS TRUE ORDER BY execution_id LIMIT $2
) AS found
GROUP BY org, queue, status
UNION ALL
SELECT 'inbox', found.org, executions.queue, found.route, CASE WHEN executions.status IN ('blocked', 'paused') THEN executions.status ELSE '' END, count(*), min(nullif(found.at, 0))
FROM (SELECT org, execution_id, route, at FROM holdfast.inbox ORDER BY id LIMIT $2) AS found
LEFT JOIN holdfast.executions ON executions.execution_id = found.execution_id
GROUP BY 2, 3, 4, 5
UNION ALL
SELECT 'due', found.org, executions.queue, found.route, CASE WHEN executions.status IN ('blocked', 'paused') THEN executions.status ELSE '' END, count(*), min(found.due)
FROM (
    SELECT due.* FROM unnest($3::text[]) AS mine (route) CROSS JOIN LATERAL (SELECT org, execution_id, route, due FROM holdfast.timers WHERE timers.route = mine.route AND timers.due <= $1 ORDER BY timers.due LIMIT $2) AS due LIMIT $2
) AS found
LEFT JOIN holdfast.executions ON executions.execution_id = found.execution_id
GROUP BY 2, 3, 4, 5
UNION ALL
SELECT 'offered', org, NULL, route, '', count(*), NULL
FROM (SELECT org, route FROM holdfast.activities WHERE node IS NULL ORDER BY route, id LIMIT $2) AS found
GROUP BY org, route;
