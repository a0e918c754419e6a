-- Subscriptions, and what is published without naming a receiver; see `queries.sql` for how statements are written, and
-- `holdfast.store.publications` for what they are for.

-- === turns ==============================================================================================================

-- part: kept
    pending.org, pending.kind, pending.name, pending.key, pending.body, pending.item, pending.sent_at, pending.expires_at,
    pending.target, pending.fields, pending.start, pending.place, pending.id

-- name: lock_topics
-- Nobody waits: who does not get all of its locks tries again, or is put off.
SELECT asked.place::integer
FROM unnest($1::text[], $2::boolean[]) WITH ORDINALITY AS asked (topic, alone, place)
WHERE CASE
    WHEN asked.alone THEN pg_try_advisory_xact_lock(hashtextextended(asked.topic, 4))
    ELSE pg_try_advisory_xact_lock_shared(hashtextextended(asked.topic, 4))
END;

-- part: kept_by_key
    FROM holdfast.pending
    WHERE pending.org = asked.org AND pending.kind = asked.kind AND pending.name = asked.name
        AND pending.lookup = asked.lookup AND pending.target = asked.target
        AND (pending.expires_at > asked.now) IS TRUE  -- no index is to be used for it
        AND (pending.mode <> 'after_create' OR asked.target <> '' OR pending.sent_at >= asked.created_at)
        AND pending.item NOT IN (SELECT json_array_elements_text(asked.seen::json))  -- hashed
    ORDER BY pending.place, pending.id

-- part: kept_by_field
    FROM holdfast.pending_fields
    JOIN holdfast.pending ON pending.id = pending_fields.pending
    WHERE pending_fields.org = asked.org AND pending_fields.name = asked.name
        AND pending_fields.field = asked.field AND pending_fields.value = asked.value
        AND (pending.target = asked.target) IS TRUE
        AND (pending.expires_at > asked.now) IS TRUE
        AND (pending.mode <> 'after_create' OR asked.target <> '' OR pending.sent_at >= asked.created_at)
        AND pending.item NOT IN (SELECT json_array_elements_text(asked.seen::json))
        AND NOT EXISTS (
            SELECT 1
            FROM json_each_text(asked.conditions::json) AS condition
            WHERE NOT EXISTS (
                SELECT 1
                FROM holdfast.pending_fields AS other
                WHERE other.org = asked.org AND other.name = asked.name AND other.field = condition.key
                    AND other.value = condition.value AND other.pending = pending_fields.pending
            )
        )
    ORDER BY pending.place, pending.id

-- name: lock_topics_to_wait
-- The same for those who begin to wait. Where a wait for an event would get one that one consumer gets, the lock is asked for
-- alone at once: of two who share it, neither could have it alone. What is found here is a guess: it is read again under
-- the lock. Each comes with whether it is had alone.
WITH consumed AS MATERIALIZED (
    SELECT DISTINCT asked.topic
    FROM (
        SELECT *, 'event' AS kind, '' AS lookup
        FROM unnest(
            $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[],
            $11::bigint[], $12::text[], $13::bigint[]
        ) AS waits (topic, org, name, field, value, conditions, target, now, created_at, seen, maximum)
    ) AS asked
    CROSS JOIN LATERAL (
        (
            SELECT pending.body
-- with: kept_by_key
            LIMIT CASE WHEN asked.field = '' THEN asked.maximum ELSE 0 END
        )
        UNION ALL
        (
            SELECT pending.body
-- with: kept_by_field
            LIMIT CASE WHEN asked.field = '' THEN 0 ELSE asked.maximum END
        )
    ) AS found
    WHERE position('"event":{"consume_on_read":false'::bytea IN found.body) = 0
)
SELECT asked.place::integer, asked.alone
FROM (
    SELECT listed.place, listed.topic, listed.alone OR listed.place IN (SELECT consumed.topic FROM consumed) AS alone
    FROM unnest($1::text[], $2::boolean[]) WITH ORDINALITY AS listed (topic, alone, place)
    OFFSET 0
) AS asked
WHERE CASE
    WHEN asked.alone THEN pg_try_advisory_xact_lock(hashtextextended(asked.topic, 4))
    ELSE pg_try_advisory_xact_lock_shared(hashtextextended(asked.topic, 4))
END;

-- name: read_kept
SELECT asked.place::integer, found.*
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::bigint[]
) WITH ORDINALITY AS asked (org, kind, name, lookup, target, now, created_at, seen, maximum, place)
CROSS JOIN LATERAL (
    SELECT
-- with: kept
-- with: kept_by_key
    LIMIT asked.maximum
) AS found
ORDER BY 1, found.place, found.id;

-- name: read_kept_by_field
-- By one of the fields; the others are compared.
SELECT asked.place::integer, found.*
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::text[], $10::bigint[]
) WITH ORDINALITY AS asked (org, name, field, value, conditions, target, now, created_at, seen, maximum, place)
CROSS JOIN LATERAL (
    SELECT
-- with: kept
-- with: kept_by_field
    LIMIT asked.maximum
) AS found
ORDER BY 1, found.place, found.id;

-- name: find_holders
SELECT asked.place::integer, subscriptions.execution_id, subscriptions.number
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS asked (org, name, lookup, place)
JOIN holdfast.subscriptions
    ON subscriptions.org = asked.org AND subscriptions.kind = 'message' AND subscriptions.name = asked.name
    AND subscriptions.fields = '' AND subscriptions.lookup = asked.lookup
JOIN holdfast.executions
    ON executions.execution_id = subscriptions.execution_id AND (executions.closed_at IS NULL) IS TRUE;

-- name: put_subscriptions
INSERT INTO holdfast.subscriptions (
    org, kind, name, execution_id, number, key, conditions, standing, since, created_at, fields, lookup
)
SELECT *
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::boolean[], $9::bigint[],
    $10::bigint[], $11::text[], $12::text[]
)
ON CONFLICT DO NOTHING;

-- name: end_subscriptions
DELETE FROM holdfast.subscriptions
USING unnest($1::text[], $2::bigint[]) AS ended (execution_id, number)
WHERE subscriptions.execution_id = ended.execution_id AND subscriptions.number = ended.number;

-- name: take_pending
WITH gone AS (
    DELETE FROM holdfast.pending
    WHERE id = ANY ($1::bigint[])
    RETURNING id
)
DELETE FROM holdfast.pending_fields
USING gone
WHERE pending_fields.pending = gone.id;

-- name: set_pending_starts
UPDATE holdfast.pending
SET start = given.start, start_id = given.start_id
FROM unnest($1::bigint[], $2::bytea[], $3::text[]) AS given (id, start, start_id)
WHERE pending.id = given.id;

-- name: take_over_pending
UPDATE holdfast.pending
SET target = new.execution_id
FROM unnest($1::text[], $2::text[]) AS new (execution_id, before)
WHERE pending.target = new.before AND pending.target <> '';

-- name: read_ended_kept
-- What is kept for executions that end.
SELECT
-- with: kept
FROM holdfast.pending
WHERE pending.target = ANY ($1::text[]) AND pending.target <> ''
ORDER BY pending.place, pending.id
FOR UPDATE SKIP LOCKED;

-- name: read_ended_starts
-- The first, or as many as asked for, of what is to start under each workflow id that is free now.
SELECT found.*
FROM unnest($1::text[], $2::text[]) AS ended (org, workflow_id)
CROSS JOIN LATERAL (
    SELECT
-- with: kept
    FROM holdfast.pending
    WHERE pending.org = ended.org AND pending.start_id = ended.workflow_id AND pending.start_id <> ''
        AND (pending.expires_at > $3::bigint) IS TRUE
    ORDER BY pending.place, pending.id
    LIMIT $4
    FOR UPDATE SKIP LOCKED
) AS found
WHERE (
    SELECT executions.id
    FROM holdfast.executions
    WHERE executions.org = ended.org AND executions.workflow_id = ended.workflow_id AND executions.closed_at IS NULL
) IS NULL;

-- name: put_publications
INSERT INTO holdfast.publications (org, body, fields, origin, number, is_returned, subscribers, kind, name, lookup)
SELECT *
FROM unnest(
    $1::text[], $2::bytea[], $3::text[], $4::text[], $5::bigint[], $6::boolean[], $7::text[], $8::text[], $9::text[],
    $10::text[]
);

-- === publishing =========================================================================================================

-- name: read_starts
SELECT starts.kind, starts.name, starts.workflow, starts.queue, starts.route, starts.version, starts.org, starts.node
FROM unnest($1::text[], $2::text[]) AS asked (kind, name)
JOIN holdfast.starts ON starts.kind = asked.kind AND starts.name = asked.name AND starts.org IN ('', $3)
ORDER BY starts.kind, starts.name, starts.org, starts.workflow, starts.queue, starts.version, starts.node;

-- name: read_outbox
-- Only those before which, of the same name and key, none is waiting that others are at, or that is skipped.
WITH held AS MATERIALIZED (
    SELECT *
    FROM holdfast.publications
    WHERE subscribers IS NULL
        AND (org, kind, name, lookup) NOT IN (
            SELECT skipped.org, skipped.kind, skipped.name, skipped.lookup
            FROM holdfast.publications AS skipped
            WHERE skipped.id = ANY ($2::bigint[])
        )
    ORDER BY id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
SELECT org, body, fields, origin, number, is_returned, subscribers, id
FROM held
WHERE NOT EXISTS (
    SELECT 1
    FROM holdfast.publications AS earlier
    WHERE earlier.org = held.org AND earlier.kind = held.kind AND earlier.name = held.name AND earlier.lookup = held.lookup
        AND earlier.id < held.id AND earlier.subscribers IS NULL
        AND NOT (earlier.id = ANY (ARRAY(SELECT id FROM held)))
)
ORDER BY id;

-- name: find_shapes
-- Each leads to the next by the index: what it costs depends on how many there are, not on how many wait.
WITH RECURSIVE shape (org, name, fields) AS (
    SELECT asked.org, asked.name, (
        SELECT first.fields
        FROM holdfast.subscriptions AS first
        WHERE first.org = asked.org AND first.kind = 'event' AND first.name = asked.name
        ORDER BY first.fields
        LIMIT 1
    )
    FROM unnest($1::text[], $2::text[]) AS asked (org, name)
    UNION ALL
    SELECT shape.org, shape.name, (
        SELECT next.fields
        FROM holdfast.subscriptions AS next
        WHERE next.org = shape.org AND next.kind = 'event' AND next.name = shape.name AND next.fields > shape.fields
        ORDER BY next.fields
        LIMIT 1
    )
    FROM shape
    WHERE shape.fields IS NOT NULL
)
SELECT org, name, fields FROM shape WHERE fields IS NOT NULL;

-- name: find_waiters
SELECT asked.place, found.*
FROM unnest(
    $1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
    $10::bigint[]
) AS asked (place, org, kind, name, fields, lookup, origin, since, created, maximum)
CROSS JOIN LATERAL (
    SELECT subscriptions.id, subscriptions.org, subscriptions.execution_id, subscriptions.number, subscriptions.standing,
        executions.route
    FROM holdfast.subscriptions
    JOIN holdfast.executions
        ON executions.execution_id = subscriptions.execution_id AND (executions.closed_at IS NULL) IS TRUE
    WHERE subscriptions.org = asked.org AND subscriptions.kind = asked.kind AND subscriptions.name = asked.name
        AND subscriptions.fields = asked.fields AND subscriptions.lookup = asked.lookup
        AND (subscriptions.execution_id <> asked.origin) IS TRUE
        AND subscriptions.since <= asked.since AND subscriptions.created_at <= asked.created
    ORDER BY subscriptions.id
    LIMIT asked.maximum
) AS found;

-- name: find_waits_of
SELECT subscriptions.id, subscriptions.org, subscriptions.execution_id, subscriptions.number, subscriptions.standing,
    executions.route, subscriptions.name, subscriptions.conditions, subscriptions.since
FROM holdfast.subscriptions
JOIN holdfast.executions
    ON executions.execution_id = subscriptions.execution_id AND (executions.closed_at IS NULL) IS TRUE
WHERE subscriptions.execution_id = ANY ($1::text[]) AND (subscriptions.kind = 'event') IS TRUE
ORDER BY subscriptions.id;

-- name: share_targets
-- Against those who close: who is at that is left out.
SELECT org, execution_id, closed_at IS NULL
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[])
FOR KEY SHARE SKIP LOCKED;

-- name: find_targets
SELECT org, execution_id
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[]);

-- name: find_open_receivers
-- Who is open under workflow ids, and whether a start waits there.
SELECT asked.org, asked.workflow_id, (
    SELECT executions.execution_id
    FROM holdfast.executions
    WHERE executions.org = asked.org AND executions.workflow_id = asked.workflow_id AND executions.closed_at IS NULL
), (
    SELECT inbox.id
    FROM holdfast.inbox
    WHERE inbox.execution_id = '' AND inbox.workflow_id = asked.workflow_id AND inbox.org = asked.org
        AND substring(inbox.body FROM 1 FOR 15) = '{"type":"start"'::bytea
    LIMIT 1
) IS NOT NULL
FROM unnest($1::text[], $2::text[]) AS asked (org, workflow_id);

-- name: count_kept
SELECT asked.org, asked.kind, asked.name, counted.count
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS asked (org, kind, name, maximum)
CROSS JOIN LATERAL (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM holdfast.pending
        WHERE pending.org = asked.org AND pending.kind = asked.kind AND pending.name = asked.name
            AND (pending.expires_at > $5::bigint) IS TRUE
        LIMIT asked.maximum
    ) AS counted_rows
) AS counted;

-- name: count_kept_in_org
SELECT asked.org, counted.count
FROM unnest($1::text[], $2::bigint[]) AS asked (org, maximum)
CROSS JOIN LATERAL (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM holdfast.pending
        WHERE pending.org = asked.org AND (pending.expires_at > $3::bigint) IS TRUE
        LIMIT asked.maximum
    ) AS counted_rows
) AS counted;

-- name: count_subscriptions
SELECT asked.org, counted.count
FROM unnest($1::text[], $2::bigint[]) AS asked (org, maximum)
CROSS JOIN LATERAL (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM holdfast.subscriptions
        WHERE subscriptions.org = asked.org
        LIMIT asked.maximum
    ) AS counted_rows
) AS counted;

-- name: count_open_in_org
SELECT count(*)
FROM (
    SELECT 1
    FROM holdfast.executions
    WHERE org = $1 AND closed_at IS NULL
    LIMIT $2::bigint
) AS counted_rows;

-- name: find_kept_messages
-- Where messages with these keys are kept: whether one has this id, and those of the first ones that wait for no start.
SELECT asked.org, asked.name, asked.key, asked.item, same.is_kept, older.place, older.id
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS asked (org, name, key, item, lookup)
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT 1
        FROM holdfast.pending
        WHERE pending.org = asked.org AND pending.kind = 'message' AND pending.name = asked.name
            AND pending.item = asked.item AND (pending.key = asked.key) IS TRUE AND (pending.expires_at > $6::bigint) IS TRUE
    ) AS is_kept
) AS same
LEFT JOIN LATERAL (
    SELECT first.place, first.id
    FROM (
        SELECT pending.place, pending.id, pending.start_id
        FROM holdfast.pending
        WHERE pending.org = asked.org AND pending.kind = 'message' AND pending.name = asked.name
            AND pending.lookup = asked.lookup AND pending.target = ''
            AND (pending.key = asked.key) IS TRUE AND (pending.expires_at > $6::bigint) IS TRUE
        ORDER BY pending.place, pending.id
        LIMIT $7
    ) AS first
    WHERE first.start_id = ''
) AS older ON TRUE
WHERE same.is_kept OR older.id IS NOT NULL
ORDER BY older.place, older.id;

-- name: read_kept_messages
SELECT
-- with: kept
FROM holdfast.pending
WHERE pending.id = ANY ($1::bigint[]) AND (pending.kind = 'message') IS TRUE;

-- name: read_unstarted
-- Each org leads to the next by the index.
WITH RECURSIVE orgs (org) AS (
    SELECT ''::text COLLATE "C"
    UNION ALL
    SELECT (SELECT next.org FROM holdfast.pending AS next WHERE next.org > orgs.org ORDER BY next.org LIMIT 1)
    FROM orgs
    WHERE orgs.org IS NOT NULL
)
SELECT
-- with: kept
FROM orgs
CROSS JOIN unnest($1::text[]) AS asked (name)
JOIN holdfast.pending ON pending.org = orgs.org AND pending.kind = 'message' AND pending.name = asked.name
WHERE (pending.start_id = '') IS TRUE AND (pending.expires_at > $2::bigint) IS TRUE AND (pending.id > $3::bigint) IS TRUE
ORDER BY pending.id
LIMIT $4;

-- name: put_pending
WITH put AS (
    INSERT INTO holdfast.pending (
        org, kind, name, key, body, item, sent_at, expires_at, target, fields, start, place, lookup, start_id, mode
    )
    SELECT *
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::bigint[], $8::bigint[], $9::text[],
        $10::text[], $11::bytea[], $12::bigint[], $13::text[], $14::text[], $15::text[]
    )
    RETURNING id, org, name, fields
)
INSERT INTO holdfast.pending_fields (org, name, field, value, pending)
SELECT put.org, put.name, one.key, one.value, put.id
FROM put
CROSS JOIN LATERAL json_each_text(put.fields::json) AS one;

-- name: drop_publications
DELETE FROM holdfast.publications
WHERE id = ANY ($1::bigint[]);

-- name: read_spread
SELECT org, body, fields, origin, number, is_returned, subscribers, id
FROM holdfast.publications
WHERE subscribers IS NOT NULL AND NOT (id = ANY ($1::bigint[]))
ORDER BY id
LIMIT 1
FOR UPDATE SKIP LOCKED;

-- name: shorten_spread
UPDATE holdfast.publications
SET subscribers = $2
WHERE id = $1;

-- name: put_triggered
-- For those of a list that still wait, in its order; what is published is sent to the server once.
INSERT INTO holdfast.inbox (org, execution_id, workflow_id, body, attempts, route, at)
SELECT subscriptions.org, subscriptions.execution_id, '',
    $3::bytea || convert_to(subscriptions.number::text, 'UTF8') || $4::bytea, 0, executions.route, $5::bigint
FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS asked (execution_id, number, place)
JOIN holdfast.subscriptions
    ON subscriptions.execution_id = asked.execution_id AND subscriptions.number = asked.number
JOIN holdfast.executions
    ON executions.execution_id = subscriptions.execution_id AND (executions.closed_at IS NULL) IS TRUE
ORDER BY asked.place;

-- === outside of batches =================================================================================================

-- name: list_pending
SELECT
-- with: kept
FROM holdfast.pending
WHERE org = $1 AND kind = $2 AND name = $3 AND expires_at > $4 AND id > $5
ORDER BY id
LIMIT $6;

-- name: find_pending
SELECT DISTINCT key
FROM holdfast.pending
WHERE org = $1 AND kind = $2 AND name = $3 AND item = $4
ORDER BY key;

-- name: wait_for_topic
-- For who holds nothing else.
SELECT pg_advisory_xact_lock(hashtextextended($1, 4));

-- name: remove_pending
WITH gone AS (
    DELETE FROM holdfast.pending
    WHERE org = $1 AND kind = $2 AND name = $3 AND item = $4
    RETURNING id
), forgotten AS (
    DELETE FROM holdfast.pending_fields
    USING gone
    WHERE pending_fields.pending = gone.id
)
SELECT id FROM gone;

-- name: purge_pending
WITH gone AS (
    DELETE FROM holdfast.pending
    WHERE id = ANY (ARRAY(
        SELECT id FROM holdfast.pending WHERE expires_at < $1 ORDER BY expires_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
), forgotten AS (
    DELETE FROM holdfast.pending_fields
    USING gone
    WHERE pending_fields.pending = gone.id
)
SELECT count(*) FROM gone;

-- name: list_subscriptions
SELECT org, kind, name, execution_id, number, key, conditions, standing, since, created_at
FROM holdfast.subscriptions
WHERE org = $1 AND execution_id = $2
ORDER BY number;

-- name: put_starts
INSERT INTO holdfast.starts (kind, name, workflow, queue, route, version, org, node)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
ON CONFLICT DO NOTHING;

-- name: remove_starts
DELETE FROM holdfast.starts
WHERE node = ANY ($1::text[]);

-- === checking ===========================================================================================================

-- name: check_subscriptions
SELECT subscriptions.execution_id, subscriptions.number, executions.status, executions.closed_at,
       subscriptions.conditions, subscriptions.key, subscriptions.fields, subscriptions.lookup
FROM holdfast.subscriptions
LEFT JOIN holdfast.executions ON executions.execution_id = subscriptions.execution_id
ORDER BY subscriptions.execution_id, subscriptions.number;

-- name: check_pending
-- Overdue is what expired a day before a node was seen last that has run for longer.
SELECT pending.id, pending.body, pending.target, executions.status, executions.closed_at, EXISTS (
    SELECT 1
    FROM holdfast.nodes
    WHERE nodes.started_at < nodes.seen_at - 86400000000 AND pending.expires_at < nodes.seen_at - 86400000000
), pending.fields, (
    SELECT json_agg(json_build_array(field, value))::text
    FROM holdfast.pending_fields
    WHERE pending_fields.pending = pending.id
), pending.start
FROM holdfast.pending
LEFT JOIN holdfast.executions ON executions.execution_id = pending.target
ORDER BY pending.id;

-- name: check_leftovers
-- Rows that belong to others which are not there.
SELECT DISTINCT 'fields of kept publication', pending::text
FROM holdfast.pending_fields
WHERE NOT EXISTS (SELECT 1 FROM holdfast.pending WHERE pending.id = pending_fields.pending)
UNION ALL
SELECT DISTINCT 'keys of human task', task_id
FROM holdfast.task_keys
WHERE NOT EXISTS (SELECT 1 FROM holdfast.tasks WHERE tasks.task_id = task_keys.task_id)
UNION ALL
SELECT DISTINCT 'events of human task', task_id
FROM holdfast.task_events
WHERE NOT EXISTS (SELECT 1 FROM holdfast.tasks WHERE tasks.task_id = task_events.task_id);

-- name: check_publications
SELECT id, body, fields, subscribers FROM holdfast.publications ORDER BY id;
