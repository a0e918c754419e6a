-- Every statement of the PostgreSQL store. `holdfast` stands for the schema's name. Rows of a batch come as one array per
-- column: one statement per table and batch. Lists that are walked by an index come first in a join, see `connections`.
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
SELECT org, execution_id, state_version, closed_at IS NULL
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
-- What waits for executions, what is due for those that are open ($2), and what waits for workflow ids ($4, $5); timers come
-- with NULL for a body.
SELECT org, execution_id, workflow_id, body, id, attempts, route, 0 AS number
FROM holdfast.inbox
WHERE execution_id = ANY ($1::text[])
UNION ALL
SELECT org, execution_id, '', NULL, due, attempt, route, number
FROM holdfast.timers
WHERE execution_id = ANY ($2::text[]) AND due <= $3
UNION ALL
SELECT mine.org, '', mine.workflow_id, mine.body, mine.id, mine.attempts, mine.route, 0
FROM unnest($4::text[], $5::text[]) AS asked (org, workflow_id)
CROSS JOIN LATERAL (
    SELECT inbox.org, inbox.workflow_id, inbox.body, inbox.id, inbox.attempts, inbox.route
    FROM holdfast.inbox
    WHERE inbox.execution_id = '' AND inbox.workflow_id = asked.workflow_id AND inbox.org = asked.org
    OFFSET 0  -- one walk for each: the planner must not turn them into one through all that wait under workflow ids
) AS mine;

-- === reading ============================================================================================================

-- name: read_executions
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
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

-- name: read_latest
-- The open one is always the newest: another is only let in after it has closed.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE org = $1 AND workflow_id = $2
ORDER BY id DESC
LIMIT 1;

-- name: read_request
SELECT org, kind, key, execution_id, sequence, expires_at
FROM holdfast.requests
WHERE org = $1 AND kind = $2 AND key = $3 AND expires_at > $4;

-- name: find_execution
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE execution_id = $2 AND (org = $1) IS TRUE;

-- name: list_executions
-- Walks down the index of execution ids, which are ordered by time, until the page is full.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE org = $1
    AND ($2::text IS NULL OR execution_id < $2)
    AND ($3::text[] IS NULL OR status = ANY ($3))
    AND ($4::text IS NULL OR workflow = $4)
ORDER BY execution_id DESC
LIMIT $5;

-- name: list_open_executions
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE org = $1
    AND (closed_at IS NULL) IS TRUE
    AND ($2::text IS NULL OR execution_id < $2)
    AND ($3::text[] IS NULL OR status = ANY ($3))
    AND ($4::text IS NULL OR workflow = $4)
ORDER BY execution_id DESC
LIMIT $5;

-- name: list_executions_of_workflow_id
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE org = $1
    AND ($2::text IS NULL OR execution_id < $2)
    AND ($3::text[] IS NULL OR status = ANY ($3))
    AND ($4::text IS NULL OR workflow = $4)
    AND workflow_id = $6
    AND ($7::text IS NULL OR parent_id = $7)
ORDER BY execution_id DESC
LIMIT $5;

-- name: list_children
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE org = $1
    AND ($2::text IS NULL OR execution_id < $2)
    AND ($3::text[] IS NULL OR status = ANY ($3))
    AND ($4::text IS NULL OR workflow = $4)
    AND parent_id = $6
ORDER BY execution_id DESC
LIMIT $5;

-- name: list_orphans
-- `node` holds ids joined by commas.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE (closed_at IS NULL) IS TRUE
    AND execution_id > $3
    AND node IS NOT NULL
    AND NOT string_to_array(node, ',') <@ $1::text[]
ORDER BY execution_id
LIMIT $2;

-- name: list_blocked
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE is_blocked AND execution_id > $2
ORDER BY execution_id
LIMIT $1;

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

-- name: find_closed
SELECT execution_id
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[]) AND closed_at IS NOT NULL;

-- name: find_oldest_closed
SELECT min(closed_at) FROM holdfast.executions WHERE closed_at IS NOT NULL;

-- name: count_open
SELECT status, count(*)
FROM holdfast.executions
WHERE (closed_at IS NULL) IS TRUE
GROUP BY status;

-- name: count_queued
SELECT (SELECT count(*) FROM holdfast.timers),
       (SELECT count(*) FROM holdfast.inbox),
       (SELECT count(*) FROM holdfast.dead_letters);

-- === writing turns ======================================================================================================

-- name: escalate
-- Against those who share the row to deliver: whoever does not get this lock may not close.
SELECT execution_id
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[])
FOR UPDATE SKIP LOCKED;

-- name: update_executions
-- Before all else, and only those whose version is the expected one; the events of the winners with it. A closing that leaves
-- something in the inbox ($18: what is taken from it) does not win; one that wins ends its timers and offers. Sets no indexed
-- column but `closed_at`, at the end.
WITH won AS (
    UPDATE holdfast.executions AS stored
    SET status = new.status,
        state_version = new.state_version,
        sequence = new.sequence,
        node = new.node,
        updated_at = new.updated_at,
        closed_at = new.closed_at,
        code_version = new.code_version,
        details = new.details,
        route = new.route,
        is_blocked = new.status = 'blocked'
    FROM unnest(
        $1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[],
        $10::text[], $11::bytea[], $12::text[], $13::bigint[], $14::integer[], $15::bigint[], $16::integer[], $17::bytea[]
    ) AS new (
        execution_id, org, expected, status, state_version, sequence, node, updated_at, closed_at,
        code_version, details, route, first, count, at, schema, body
    )
    WHERE stored.execution_id = new.execution_id
        AND stored.state_version = new.expected
        AND (stored.org = new.org) IS TRUE
        AND (
            new.closed_at IS NULL
            OR (
                (
                    SELECT inbox.id
                    FROM holdfast.inbox
                    WHERE inbox.execution_id = new.execution_id AND inbox.org = new.org AND inbox.id <> ALL ($18::bigint[])
                    LIMIT 1
                ) IS NULL  -- not EXISTS, for which the planner may choose to read the whole inbox
                AND (
                    new.status = 'terminated'
                    OR (
                        SELECT inbox.id
                        FROM holdfast.inbox
                        WHERE inbox.execution_id = '' AND inbox.workflow_id = stored.workflow_id AND inbox.org = new.org
                            AND inbox.route = '' AND inbox.id <> ALL ($18::bigint[])
                        LIMIT 1
                    ) IS NULL
                )
            )
        )
    RETURNING stored.id, stored.execution_id, new.closed_at, new.first, new.count, new.at, new.schema, new.body
), written AS (
    INSERT INTO holdfast.events (execution, first, count, at, schema, body)
    SELECT id, first, count, at, schema, body
    FROM won
    WHERE body IS NOT NULL
), silenced AS (
    DELETE FROM holdfast.timers
    USING won
    WHERE won.closed_at IS NOT NULL AND timers.execution_id = won.execution_id
), withdrawn AS (
    DELETE FROM holdfast.activities
    USING won
    WHERE won.closed_at IS NOT NULL AND activities.execution_id = won.execution_id
)
SELECT execution_id, pg_current_xact_id()::text FROM won;

-- name: insert_executions
-- One whose workflow id is open, or whose execution id is taken, is left out. Those that close in their first turn are not in the
-- index of what is open: look there first, and into the inbox, as for every closing ($17: what is taken from it).
INSERT INTO holdfast.executions (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
    created_at, updated_at, closed_at, details, route, is_blocked
)
SELECT new.*, new.status = 'blocked'
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[],
    $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bytea[], $16::text[]
) AS new (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
    created_at, updated_at, closed_at, details, route
)
WHERE new.closed_at IS NULL
    OR (
        (
            SELECT open.id
            FROM holdfast.executions AS open
            WHERE open.org = new.org AND open.workflow_id = new.workflow_id AND open.closed_at IS NULL
        ) IS NULL
        AND (
            SELECT inbox.id
            FROM holdfast.inbox
            WHERE inbox.execution_id = new.execution_id AND inbox.org = new.org AND inbox.id <> ALL ($17::bigint[])
            LIMIT 1
        ) IS NULL
    )
ON CONFLICT DO NOTHING
RETURNING execution_id, id, pg_current_xact_id()::text;

-- name: append_events
INSERT INTO holdfast.events (execution, first, count, at, schema, body)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::integer[], $6::bytea[]);

-- name: put_timers
INSERT INTO holdfast.timers (org, execution_id, number, due, attempt, route)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::integer[], $6::text[])
ON CONFLICT (execution_id, number) DO UPDATE
SET due = excluded.due, attempt = excluded.attempt, org = excluded.org, route = excluded.route;

-- name: end_timers
DELETE FROM holdfast.timers
USING unnest($1::text[], $2::bigint[]) AS ended (execution_id, number)
WHERE timers.execution_id = ended.execution_id AND timers.number = ended.number;

-- name: consume_inbox
DELETE FROM holdfast.inbox
WHERE id = ANY ($1::bigint[]);

-- name: fail_inbox
UPDATE holdfast.inbox
SET attempts = attempts + 1
WHERE id = ANY ($1::bigint[]);

-- name: reroute_inbox
UPDATE holdfast.inbox
SET route = new.route
FROM unnest($1::bigint[], $2::text[]) AS new (id, route)
WHERE inbox.id = new.id;

-- name: put_inbox
INSERT INTO holdfast.inbox (org, execution_id, workflow_id, body, attempts, route)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::integer[], $6::text[]);

-- name: put_dead_letters
INSERT INTO holdfast.dead_letters (org, execution_id, workflow_id, body, reason, node, at, attempts)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::bigint[], $8::integer[]);

-- name: put_requests
INSERT INTO holdfast.requests (org, kind, key, execution_id, sequence, expires_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
ON CONFLICT (org, kind, key) DO UPDATE
SET execution_id = excluded.execution_id, sequence = excluded.sequence, expires_at = excluded.expires_at;

-- name: put_request_once
INSERT INTO holdfast.requests (org, kind, key, execution_id, sequence, expires_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (org, kind, key) DO NOTHING
RETURNING true;

-- name: forget_requests
-- A few at a time, with those that come in: the table does not outgrow what is still valid.
DELETE FROM holdfast.requests
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.requests WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
));

-- name: put_offers
INSERT INTO holdfast.activities (org, execution_id, number, attempt, route, body, node)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::integer[], $5::text[], $6::bytea[], $7::text[])
ON CONFLICT (execution_id, number) DO UPDATE
SET attempt = excluded.attempt, route = excluded.route, body = excluded.body, node = excluded.node, id = excluded.id;

-- name: end_offers
DELETE FROM holdfast.activities
USING unnest($1::text[], $2::bigint[]) AS ended (execution_id, number)
WHERE activities.execution_id = ended.execution_id AND activities.number = ended.number;

-- === writing outside of batches =========================================================================================

-- name: share_executions
-- Waits for a turn that is about to close, for nothing else; then sees whether it is open.
SELECT org, execution_id, route
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[]) AND (closed_at IS NULL) IS TRUE
ORDER BY execution_id
FOR KEY SHARE;

-- name: replace_execution
UPDATE holdfast.executions
SET workflow_id = $4, workflow = $5, code_version = $6, queue = $7, status = $8, state_version = $9, sequence = $10, node = $11,
    parent_id = $12, created_at = $13, updated_at = $14, closed_at = $15, details = $16, route = $17,
    is_blocked = $8::text = 'blocked'
WHERE execution_id = $2 AND state_version = $3 AND (org = $1) IS TRUE
RETURNING execution_id;

-- name: take_dead_letters
DELETE FROM holdfast.dead_letters
WHERE org = $1 AND id = ANY ($2::bigint[])
RETURNING id, org, execution_id, workflow_id, body;

-- name: take_offers
-- The oldest first, from each route; then those whose turn it is among all of them.
WITH chosen AS (
    SELECT offered.execution_id, offered.number
    FROM unnest($2::text[]) AS mine (route)
    CROSS JOIN LATERAL (
        SELECT activities.id, activities.execution_id, activities.number
        FROM holdfast.activities
        WHERE activities.route = mine.route AND activities.node IS NULL
        ORDER BY activities.id
        LIMIT $3
        FOR UPDATE SKIP LOCKED
    ) AS offered
    ORDER BY offered.id
    LIMIT $3
), taken AS (
    UPDATE holdfast.activities
    SET node = $1
    FROM chosen
    WHERE activities.execution_id = chosen.execution_id AND activities.number = chosen.number
        AND (activities.node IS NULL) IS TRUE
    RETURNING activities.org, activities.execution_id, activities.number, activities.attempt, activities.route,
        activities.body, activities.node, activities.id
), watched AS (
    DELETE FROM holdfast.timers
    USING taken
    WHERE timers.execution_id = taken.execution_id AND timers.number = taken.number AND timers.attempt < 0
)
SELECT org, execution_id, number, attempt, route, body, node FROM taken ORDER BY id;

-- name: list_lost_offers
SELECT org, execution_id, number, attempt, route, body, node
FROM holdfast.activities
WHERE node IS NOT NULL AND node <> ALL ($1::text[])
ORDER BY id
LIMIT $2;

-- name: find_kept_offers
SELECT activities.execution_id, activities.number, activities.attempt
FROM unnest($2::text[], $3::bigint[], $4::integer[]) AS asked (execution_id, number, attempt)
JOIN holdfast.activities
    ON activities.execution_id = asked.execution_id
    AND activities.number = asked.number
    AND activities.attempt = asked.attempt
    AND activities.node = $1;

-- name: purge
-- Only what nobody is at; a closed execution is never opened again.
WITH gone AS (
    DELETE FROM holdfast.executions
    WHERE id = ANY (ARRAY(
        SELECT id FROM holdfast.executions WHERE closed_at < $1 ORDER BY closed_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, execution_id
), histories AS (
    DELETE FROM holdfast.events USING gone WHERE events.execution = gone.id
), answered AS (
    DELETE FROM holdfast.requests USING gone WHERE requests.execution_id = gone.execution_id
)
SELECT count(*) FROM gone;

-- === nodes ==============================================================================================================

-- name: beat
-- Everything that an idle node wants to know, in the one statement that it runs. Its own row comes as it was before.
WITH own AS (
    INSERT INTO holdfast.nodes AS stored (node, seen_at, started_at, has_left, details)
    VALUES ($1, coalesce($6, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), $2, false, $3)
    ON CONFLICT (node) DO UPDATE
    SET seen_at = excluded.seen_at, started_at = excluded.started_at, has_left = false, details = excluded.details
    RETURNING stored.seen_at
)
SELECT own.seen_at,
    (
        SELECT min(next.due)
        FROM unnest($4::text[]) AS mine (route)
        CROSS JOIN LATERAL (
            SELECT timers.due FROM holdfast.timers WHERE timers.route = mine.route ORDER BY timers.due LIMIT 1
        ) AS next
    ),
    EXISTS (SELECT 1 FROM holdfast.inbox WHERE inbox.route = ANY ($4::text[])),
    EXISTS (SELECT 1 FROM holdfast.activities WHERE activities.route = ANY ($5::text[]) AND activities.node IS NULL),
    before.*
FROM own
CROSS JOIN (
    SELECT array_agg(node), array_agg(seen_at), array_agg(started_at), array_agg(has_left), array_agg(details)
    FROM (SELECT * FROM holdfast.nodes ORDER BY node) AS sorted
) AS before;

-- name: list_nodes
SELECT node, seen_at, started_at, has_left, details
FROM holdfast.nodes
ORDER BY node;

-- name: leave
UPDATE holdfast.nodes SET has_left = true WHERE node = $1;

-- name: remove_nodes
DELETE FROM holdfast.nodes WHERE node = ANY ($1::text[]);

-- name: take_lock
INSERT INTO holdfast.locks AS held (name, node, until)
VALUES ($1, $2, $4)
ON CONFLICT (name) DO UPDATE
SET node = excluded.node, until = excluded.until
WHERE held.node = excluded.node OR held.until <= $3
RETURNING held.node;

-- name: give_lock
DELETE FROM holdfast.locks WHERE name = $1 AND node = $2;

-- name: hold_execution
-- As a batch holds it, but waits for whoever does: nobody waits for what this transaction has.
SELECT true
FROM holdfast.executions
WHERE execution_id = $2 AND (closed_at IS NULL) IS TRUE AND (org = $1) IS TRUE
FOR NO KEY UPDATE;

-- name: enlist
-- On a user's own connection. The wake-up rides on the user's commit: there is no other moment at which it could be sent.
WITH put AS (
    INSERT INTO holdfast.inbox (org, execution_id, workflow_id, body, attempts, route)
    VALUES ($1, $2, $3, $4, $5, $6)
)
SELECT pg_notify($7, '');

-- name: notify
SELECT pg_notify($1, '');

-- === checking ===========================================================================================================

-- name: check_executions
SELECT execution_id, status, closed_at, details, is_blocked, sequence,
    (SELECT count(*) FROM holdfast.executions AS other
     WHERE other.org = executions.org AND other.workflow_id = executions.workflow_id AND other.closed_at IS NULL),
    (SELECT coalesce(sum(events.count), 0) FROM holdfast.events WHERE events.execution = executions.id)
FROM holdfast.executions
ORDER BY execution_id;

-- name: check_histories
SELECT executions.execution_id, events.first, events.count, events.schema, events.body
FROM holdfast.events
JOIN holdfast.executions ON executions.id = events.execution
ORDER BY executions.execution_id, events.first;

-- name: check_histories_without_row
SELECT DISTINCT execution
FROM holdfast.events
WHERE NOT EXISTS (SELECT 1 FROM holdfast.executions WHERE executions.id = events.execution)
ORDER BY execution;

-- name: check_timers
SELECT timers.execution_id, timers.number, executions.status
FROM holdfast.timers
LEFT JOIN holdfast.executions ON executions.execution_id = timers.execution_id
WHERE executions.closed_at IS NOT NULL OR executions.execution_id IS NULL
ORDER BY timers.execution_id, timers.number;

-- name: check_offers
SELECT activities.execution_id, activities.number, executions.status
FROM holdfast.activities
LEFT JOIN holdfast.executions ON executions.execution_id = activities.execution_id
WHERE executions.closed_at IS NOT NULL OR executions.execution_id IS NULL
ORDER BY activities.execution_id, activities.number;

-- name: check_envelopes
SELECT id, body FROM holdfast.inbox ORDER BY id;
