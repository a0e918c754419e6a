-- The statements that write; see `queries.sql` for how they are written.

-- === writing turns ======================================================================================================

-- name: escalate
-- Against those who share the row to deliver: whoever does not get this lock may not close.
SELECT execution_id
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[])
FOR UPDATE SKIP LOCKED;

-- name: update_executions
-- Before all else, and only those whose version is the expected one; the events of the winners with it. A closing that leaves
-- something in the inbox ($18: what is taken from it) does not win; one that wins ends its timers, offers and subscriptions, and
-- is told whether anything is kept with regard to ends of executions. None wins if the settings number is not $19. Sets no
-- indexed column but `closed_at`, at the end.
WITH won AS (
    UPDATE holdfast.executions AS stored
    SET status = new.status,
        state_version = new.state_version,
        sequence = new.sequence,
        nodes = new.nodes,
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
        execution_id, org, expected, status, state_version, sequence, nodes, updated_at, closed_at,
        code_version, details, route, first, count, at, schema, body
    )
    WHERE stored.execution_id = new.execution_id
        AND ($19::bigint IS NULL OR $19 = coalesce((SELECT number FROM holdfast.settings WHERE id = 1), 0))
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
), unsubscribed AS (
    DELETE FROM holdfast.subscriptions
    USING won
    WHERE won.closed_at IS NOT NULL AND subscriptions.execution_id = won.execution_id
)
SELECT execution_id, pg_current_xact_id()::text, closed_at IS NOT NULL AND (
    EXISTS (SELECT 1 FROM holdfast.pending WHERE pending.target <> '')
    OR EXISTS (SELECT 1 FROM holdfast.pending WHERE pending.start_id <> '')
)
FROM won;

-- name: insert_executions
-- One whose workflow id is open, or whose execution id is taken, is left out. Those that close in their first turn are not in the
-- index of what is open: look there first, and into the inbox, as for every closing ($17: what is taken from it). $18: as $19 above.
INSERT INTO holdfast.executions (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
    created_at, updated_at, closed_at, details, route, is_blocked
)
SELECT new.*, new.status = 'blocked'
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[],
    $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bytea[], $16::text[]
) AS new (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
    created_at, updated_at, closed_at, details, route
)
WHERE ($18::bigint IS NULL OR $18 = coalesce((SELECT number FROM holdfast.settings WHERE id = 1), 0))
    AND (new.closed_at IS NULL
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
    ))
ON CONFLICT DO NOTHING
RETURNING execution_id, id, pg_current_xact_id()::text, closed_at IS NOT NULL AND (
    EXISTS (SELECT 1 FROM holdfast.pending WHERE pending.target <> '')
    OR EXISTS (SELECT 1 FROM holdfast.pending WHERE pending.start_id <> '')
);

-- name: append_events
INSERT INTO holdfast.events (execution, first, count, at, schema, body)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::integer[], $6::bytea[]);

-- name: put_timers
INSERT INTO holdfast.timers (org, execution_id, number, due, kind, attempt, route)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::text[])
ON CONFLICT (execution_id, number) DO UPDATE
SET due = excluded.due, kind = excluded.kind, attempt = excluded.attempt, org = excluded.org, route = excluded.route;

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

-- name: readdress_inbox
-- Its id stays, and with it its place in the order of arrival.
UPDATE holdfast.inbox
SET execution_id = new.execution_id, workflow_id = new.workflow_id, body = new.body, route = new.route
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::text[]) AS new (id, execution_id, workflow_id, body, route)
WHERE inbox.id = new.id;

-- name: adopt_inbox
-- Ids stay, and with them the order of arrival.
UPDATE holdfast.inbox
SET execution_id = $1, workflow_id = '', route = $2
WHERE id = ANY ($3::bigint[]);

-- name: put_inbox
INSERT INTO holdfast.inbox (org, execution_id, workflow_id, body, attempts, route, at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::integer[], $6::text[], $7::bigint[]);

-- name: put_dead_letters
INSERT INTO holdfast.dead_letters (org, execution_id, workflow_id, body, reason, node, at, attempts)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::bigint[], $8::integer[]);

-- name: put_requests
INSERT INTO holdfast.requests (org, kind, key, execution_id, sequence, expires_at, answer)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bytea[])
ON CONFLICT (org, kind, key) DO UPDATE
SET execution_id = excluded.execution_id, sequence = excluded.sequence, expires_at = excluded.expires_at,
    answer = excluded.answer;

-- name: put_request_once
INSERT INTO holdfast.requests (org, kind, key, execution_id, sequence, expires_at, answer)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (org, kind, key) DO NOTHING
RETURNING true;

-- name: forget_request
DELETE FROM holdfast.requests WHERE org = $1 AND kind = $2 AND key = $3 AND expires_at <= $4;

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

-- name: hold_open
-- Whoever holds it is waited for; the row that comes back is the newest.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE execution_id = $2 AND (org = $1) IS TRUE AND (closed_at IS NULL) IS TRUE
FOR NO KEY UPDATE;

-- name: hold_open_by_workflow_id
-- As `hold_open`; nothing comes back if the row was closed while it was waited for.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE org = $1 AND workflow_id = $2 AND closed_at IS NULL
FOR NO KEY UPDATE;

-- name: replace_execution
UPDATE holdfast.executions
SET workflow_id = $4, workflow = $5, code_version = $6, queue = $7, status = $8, state_version = $9, sequence = $10, nodes = $11,
    parent_id = $12, created_at = $13, updated_at = $14, closed_at = $15, details = $16, route = $17,
    is_blocked = $8::text = 'blocked'
WHERE execution_id = $2 AND state_version = $3 AND (org = $1) IS TRUE
RETURNING execution_id;

-- name: take_dead_letters
DELETE FROM holdfast.dead_letters
WHERE org = $1 AND id = ANY ($2::bigint[])
RETURNING id, org, execution_id, workflow_id, body;

-- name: lock_offers
-- Who is taking one of them has it: nobody waits.
SELECT activities.execution_id, activities.number
FROM unnest($1::text[], $2::bigint[]) AS asked (execution_id, number)
INNER JOIN holdfast.activities USING (execution_id, number)
WHERE activities.node IS NULL
FOR UPDATE OF activities SKIP LOCKED;

-- name: take_offers
-- The oldest first, from each route; then those whose turn it is among all of them. Queues that are paused are left out.
WITH chosen AS (
    SELECT offered.execution_id, offered.number
    FROM unnest($2::text[]) AS mine (route)
    CROSS JOIN LATERAL (
        SELECT activities.id, activities.execution_id, activities.number
        FROM holdfast.activities
        WHERE activities.route = mine.route AND activities.node IS NULL
            AND NOT EXISTS (
                SELECT 1
                FROM holdfast.pauses
                WHERE pauses.org = activities.org AND pauses.kind = 'queue'
                    AND pauses.name = split_part(activities.route, chr(9), 1)
                    AND pauses.ended_at IS NULL
            )
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
    WHERE timers.execution_id = taken.execution_id AND timers.number = taken.number AND timers.kind = 'offer'
)
SELECT org, execution_id, number, attempt, route, body, node FROM taken ORDER BY id;

-- name: list_lost_offers
SELECT org, execution_id, number, attempt, route, body, node
FROM holdfast.activities
WHERE node IS NOT NULL AND node <> ALL ($1::text[])
ORDER BY id
LIMIT $2;

-- name: list_offers
SELECT org, execution_id, number, attempt, route, body, node
FROM holdfast.activities
WHERE execution_id = $1
ORDER BY number;

-- name: find_kept_offers
SELECT activities.execution_id, activities.number, activities.attempt
FROM unnest($2::text[], $3::bigint[], $4::integer[]) AS asked (execution_id, number, attempt)
JOIN holdfast.activities
    ON activities.execution_id = asked.execution_id
    AND activities.number = asked.number
    AND activities.attempt = asked.attempt
    AND activities.node = $1;

-- name: purge
-- Only what nobody is at; a closed execution is never opened again. While another is open under the workflow id, a repeated
-- call would reach that one: then request ids stay until they expire, and the keys of starts, which stand for an execution,
-- go on to it. Attributes, human tasks and waits go by triggers, whichever version removes an execution.
WITH gone AS (
    DELETE FROM holdfast.executions
    WHERE id = ANY (ARRAY(
        SELECT id FROM holdfast.executions WHERE closed_at < $1 ORDER BY closed_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, execution_id, org, workflow_id
), histories AS (
    DELETE FROM holdfast.events USING gone WHERE events.execution = gone.id
), followed AS (
    SELECT gone.execution_id, (
        SELECT open.execution_id
        FROM holdfast.executions AS open
        WHERE open.org = gone.org AND open.workflow_id = gone.workflow_id AND open.closed_at IS NULL
    ) AS open_id
    FROM gone
), handed_on AS (
    UPDATE holdfast.requests
    SET execution_id = (SELECT open_id FROM followed WHERE followed.execution_id = requests.execution_id)
    WHERE execution_id = ANY (ARRAY(SELECT execution_id FROM followed WHERE open_id IS NOT NULL))
        AND (kind IN ('start', 'start_request')) IS TRUE  -- no index is to be used for it
), answered AS (
    DELETE FROM holdfast.requests
    WHERE execution_id = ANY (ARRAY(SELECT execution_id FROM followed WHERE open_id IS NULL))
)
SELECT count(*) FROM gone;

-- name: purge_dead_letters
-- Ids grow with time: the first are the oldest, and no more than those are looked at. One that is being requeued or discarded
-- is left to whoever does that.
WITH gone AS (
    DELETE FROM holdfast.dead_letters
    WHERE id = ANY (ARRAY(
        SELECT id
        FROM holdfast.dead_letters
        WHERE id = ANY (ARRAY(
            SELECT first.id FROM (SELECT id, at FROM holdfast.dead_letters ORDER BY id LIMIT $2) AS first WHERE first.at < $1
        ))
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) FROM gone;

-- === what lists find of states ==========================================================================================

-- name: end_state_attributes
DELETE FROM holdfast.attributes
USING unnest($1::text[], $2::text[], $3::text[]) AS ended (execution_id, org, name)
WHERE attributes.execution_id = ended.execution_id AND attributes.org = ended.org AND attributes.kind = 'state'
    AND attributes.name = ended.name;

-- name: put_state_attributes
INSERT INTO holdfast.attributes (execution_id, org, kind, name, value)
SELECT new.execution_id, new.org, 'state', new.name, new.value
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS new (execution_id, org, name, value)
ON CONFLICT DO NOTHING;
