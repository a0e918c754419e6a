-- The statements of the PostgreSQL store that claim and read; those of other topics are in `queries_….sql` beside it.
--
-- `holdfast` stands for the schema's name. Rows of a batch come as one array per column: one statement per table and batch. Lists
-- that are walked by an index come first in a join, see `connections`.
-- `(… ) IS TRUE` keeps a condition from the planner: for tables that were empty when it looked, it would else take an index for it
-- that goes through all rows of an org, or all that are open, and stay with that while they grow.

-- === transactions =======================================================================================================

-- name: set_for_transaction
-- Behind a pooler, settings must not outlive the transaction.
SELECT set_config(name, value, true)
FROM unnest($1::text[], $2::text[]) AS setting (name, value);

-- name: read_transaction_id
SELECT pg_current_xact_id_if_assigned()::text, extract(epoch FROM pg_postmaster_start_time())::text;

-- name: read_transaction_status
-- A server that began after $2 may have forgotten the transaction, and given its number to another.
SELECT CASE
    WHEN $2::text <> extract(epoch FROM pg_postmaster_start_time())::text THEN 'forgotten'
    ELSE pg_xact_status($1::text::xid8)
END;

-- name: find_turn
SELECT EXISTS (
    SELECT 1
    FROM holdfast.executions
    JOIN holdfast.events ON events.execution = executions.id
    WHERE executions.execution_id = $1 AND events.first = $2 AND events.at = $3 AND events.body = $4::bytea
);

-- === claiming: locks first, each in a statement of its own, then reads ==================================================

-- name: lock_executions
-- No join: the locked row is the newest. A join would put it beside rows that are older than the lock.
SELECT org, execution_id, state_version, updated_at, closed_at IS NULL
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[])
FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_missing
-- For whom there is no row, there is nothing to lock: a lock on the id keeps others from what waits for it.
SELECT asked.execution_id,
       CASE WHEN stored.execution_id IS NULL THEN pg_try_advisory_xact_lock(hashtextextended(asked.execution_id, 1)) END
FROM unnest($1::text[]) AS asked (execution_id)
LEFT JOIN holdfast.executions AS stored ON stored.execution_id = asked.execution_id;

-- name: lock_workflow_ids
SELECT org, workflow_id
FROM unnest($1::text[], $2::text[]) AS asked (org, workflow_id)
WHERE pg_try_advisory_xact_lock(hashtextextended(org || chr(10) || workflow_id, 2));

-- name: lock_request_keys
SELECT org, kind, key
FROM unnest($1::text[], $2::text[], $3::text[]) AS asked (org, kind, key)
WHERE pg_try_advisory_xact_lock(hashtextextended(org || chr(10) || kind || chr(10) || key, 3));

-- name: resolve_workflow_ids
SELECT asked.org, asked.workflow_id, found.execution_id
FROM unnest($1::text[], $2::text[]) AS asked (org, workflow_id)
CROSS JOIN LATERAL (
    SELECT executions.execution_id
    FROM holdfast.executions
    WHERE executions.org = asked.org AND executions.workflow_id = asked.workflow_id AND executions.closed_at IS NULL
    LIMIT 1
) AS found;

-- name: list_routes
-- Walks from one route to the next by the index, however many rows each has.
WITH RECURSIVE walk (route) AS (
    (SELECT min(route) FROM (SELECT min(route) AS route FROM holdfast.inbox UNION ALL SELECT min(route) FROM holdfast.timers) AS first)
    UNION ALL
    SELECT (
        SELECT min(route)
        FROM (
            SELECT min(route) AS route FROM holdfast.inbox WHERE inbox.route > walk.route
            UNION ALL
            SELECT min(route) FROM holdfast.timers WHERE timers.route > walk.route
        ) AS following
    )
    FROM walk
    WHERE walk.route IS NOT NULL
)
SELECT route FROM walk WHERE route IS NOT NULL;

-- name: find_work
-- To whom envelopes go, the oldest first, and whose timers are due, the earliest first: a window of rows of each. The size of
-- an envelope is known without reading it.
-- Said by "=", the planner may walk along all ids and leave out those of other routes, however many there are.
(
    SELECT false, waiting.org, waiting.execution_id, waiting.workflow_id, waiting.size
    FROM unnest($1::text[]) AS mine (route)
    CROSS JOIN LATERAL (
        SELECT inbox.id, inbox.org, inbox.execution_id, inbox.workflow_id, octet_length(inbox.body) AS size
        FROM holdfast.inbox
        WHERE inbox.route >= mine.route AND inbox.route <= mine.route AND inbox.execution_id <> ALL ($2::text[])
        ORDER BY inbox.route, inbox.id
        LIMIT $3::bigint + $4::bigint
    ) AS waiting
    ORDER BY waiting.id
    LIMIT $3::bigint OFFSET $4::bigint
)
UNION ALL
(
    SELECT true, due.org, due.execution_id, '', 0
    FROM unnest($1::text[]) AS mine (route)
    CROSS JOIN LATERAL (
        SELECT timers.due, timers.org, timers.execution_id
        FROM holdfast.timers
        WHERE timers.route = mine.route AND timers.due <= $5::bigint AND timers.execution_id <> ALL ($2::text[])
        ORDER BY timers.due
        LIMIT $3::bigint + $4::bigint
    ) AS due
    ORDER BY due.due
    LIMIT $3::bigint OFFSET $4::bigint
);

-- name: read_waiting
-- What waits for executions, what is due for those that are open ($2), and what waits for workflow ids ($4 to $6: each with
-- either nothing for an execution id, or with itself); timers come with NULL for a body.
SELECT org, execution_id, workflow_id, body, id, attempts, route, at, 0 AS number, '' AS kind
FROM holdfast.inbox
WHERE execution_id = ANY ($1::text[])
UNION ALL
SELECT org, execution_id, '', NULL, due, attempt, route, 0, number, kind
FROM holdfast.timers
WHERE execution_id = ANY ($2::text[]) AND due <= $3
UNION ALL
SELECT mine.org, asked.execution_id, mine.workflow_id, mine.body, mine.id, mine.attempts, mine.route, mine.at, 0, ''
FROM unnest($4::text[], $5::text[], $6::text[]) AS asked (org, execution_id, workflow_id)
CROSS JOIN LATERAL (
    SELECT inbox.org, inbox.workflow_id, inbox.body, inbox.id, inbox.attempts, inbox.route, inbox.at
    FROM holdfast.inbox
    WHERE inbox.execution_id = asked.execution_id AND inbox.workflow_id = asked.workflow_id AND inbox.org = asked.org
    OFFSET 0  -- one walk for each: the planner must not turn them into one through all that wait under workflow ids
) AS mine;

-- name: read_withheld
-- Of what waits for executions that take no turns ($1): what does not go by their route ($2; NULL: whichever does), and short rows
-- that begin as orders do. Of a long body only the length is looked at.
SELECT mine.org, mine.execution_id, mine.workflow_id, mine.body, mine.id, mine.attempts, mine.route, mine.at
FROM unnest($1::text[], $2::text[]) AS asked (execution_id, route)
CROSS JOIN LATERAL (
    SELECT inbox.org, inbox.execution_id, inbox.workflow_id, inbox.body, inbox.id, inbox.attempts, inbox.route, inbox.at
    FROM holdfast.inbox
    WHERE inbox.execution_id = asked.execution_id
        AND (
            inbox.route <> asked.route
            OR (
                octet_length($3::bytea) > 0
                AND octet_length(inbox.body) <= $4::bigint
                AND substring(inbox.body FROM 1 FOR octet_length($3::bytea)) = $3::bytea
            )
        )
    OFFSET 0  -- one walk for each, as in read_waiting
) AS mine;

-- === reading ============================================================================================================

-- name: read_executions
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[]);

-- name: read_events
SELECT executions.execution_id, events.first, events.count, events.at, events.schema, events.body
FROM unnest($1::text[], $2::bigint[]) AS asked (execution_id, after)
JOIN holdfast.executions ON executions.execution_id = asked.execution_id
JOIN holdfast.events ON events.execution = executions.id AND events.first > asked.after
ORDER BY executions.execution_id, events.first;

-- name: read_events_page
SELECT $1, events.first, events.count, events.at, events.schema, events.body
FROM holdfast.events
WHERE events.execution = (SELECT id FROM holdfast.executions WHERE execution_id = $1) AND events.first > $2
ORDER BY events.first
LIMIT $3;

-- name: read_last_events
SELECT $1, events.first, events.count, events.at, events.schema, events.body
FROM holdfast.events
WHERE events.execution = (SELECT id FROM holdfast.executions WHERE execution_id = $1)
ORDER BY events.first DESC
LIMIT 1;

-- name: count_waiting
SELECT asked.execution_id, count(found.id)
FROM unnest($1::text[]) AS asked (execution_id)
CROSS JOIN LATERAL (
    SELECT inbox.id FROM holdfast.inbox WHERE inbox.execution_id = asked.execution_id LIMIT $2
) AS found
GROUP BY asked.execution_id;

-- name: read_latest
-- The open one is always the newest: another is only let in after it has closed.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE org = $1 AND workflow_id = $2
ORDER BY id DESC
LIMIT 1;

-- name: read_request
SELECT org, kind, key, execution_id, sequence, expires_at, answer
FROM holdfast.requests
WHERE org = $1 AND kind = $2 AND key = $3 AND expires_at > $4;

-- name: read_requests
SELECT found.org, found.kind, found.key, found.execution_id, found.sequence, found.expires_at, found.answer
FROM unnest($1::text[], $2::text[], $3::text[]) AS asked (org, kind, key)
CROSS JOIN LATERAL (
    SELECT *
    FROM holdfast.requests
    WHERE requests.org = asked.org AND requests.kind = asked.kind AND requests.key = asked.key AND requests.expires_at > $4
    OFFSET 0  -- one walk for each, as in read_waiting
) AS found;

-- name: find_execution
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE execution_id = $2 AND (org = $1) IS TRUE;

-- name: list_orphans
-- `nodes` is a JSON list of names.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE (closed_at IS NULL) IS TRUE
    AND execution_id > $3
    AND nodes IS NOT NULL
    AND NOT ARRAY(SELECT jsonb_array_elements_text(nodes::jsonb)) <@ $1::text[]
ORDER BY execution_id
LIMIT $2;

-- name: list_held
-- `nodes` is a JSON list of names. The last row of the page comes in any case: there the next page begins.
WITH page AS MATERIALIZED (
    SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
           created_at, updated_at, closed_at, details, route
    FROM holdfast.executions
    WHERE (closed_at IS NULL) IS TRUE
        AND execution_id > $3
    ORDER BY execution_id
    LIMIT $2
)
SELECT *
FROM page
WHERE (nodes IS NOT NULL AND nodes::jsonb ? $1)
    OR execution_id = (SELECT max(execution_id) FROM page)
ORDER BY execution_id;

-- name: list_blocked
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE is_blocked AND execution_id > $2
ORDER BY execution_id
LIMIT $1;

-- name: list_inbox
SELECT org, execution_id, workflow_id, body, id, attempts, route, at
FROM holdfast.inbox
WHERE org = $1 AND execution_id = $2
UNION ALL
SELECT org, execution_id, workflow_id, body, id, attempts, route, at
FROM holdfast.inbox
WHERE org = $1 AND execution_id = '' AND workflow_id = $3
ORDER BY id
LIMIT $4;

-- name: list_dead_letters
SELECT org, execution_id, workflow_id, body, reason, node, at, attempts, id
FROM holdfast.dead_letters
WHERE org = $1 AND id > $3
ORDER BY id
LIMIT $2;

-- name: find_next_due
SELECT min(next.due)
FROM unnest($1::text[]) AS mine (route)
CROSS JOIN LATERAL (
    SELECT timers.due
    FROM holdfast.timers
    WHERE timers.route = mine.route AND timers.execution_id <> ALL ($2::text[])
    ORDER BY timers.due
    LIMIT 1
) AS next;

-- name: find_settled
SELECT execution_id, closed_at IS NOT NULL
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[]) AND (closed_at IS NOT NULL OR is_blocked);

-- name: find_oldest_closed
SELECT min(closed_at) FROM holdfast.executions WHERE closed_at IS NOT NULL;

-- name: find_oldest_dead_letter
SELECT at FROM holdfast.dead_letters ORDER BY id LIMIT 1;

-- name: count_open
SELECT status, count(*)
FROM holdfast.executions
WHERE (closed_at IS NULL) IS TRUE
GROUP BY status;

-- name: count_queued
SELECT (SELECT count(*) FROM holdfast.timers),
       (SELECT count(*) FROM holdfast.inbox),
       (SELECT count(*) FROM holdfast.dead_letters);
