-- Subscriptions, and what is published without naming a receiver; see `queries.sql` for how statements are written, and
-- `holdfast.store.publications` for what they are for.

-- === turns ==============================================================================================================

-- part: kept
SELECT pending.org, pending.kind, pending.name, pending.key, pending.body, pending.item, pending.sent_at, pending.expires_at,
       pending.target, pending.fields, pending.start, pending.place, pending.id

-- name: read_kept
-- with: kept
FROM pending INDEXED BY pending_by_lookup
WHERE org = :org AND kind = :kind AND name = :name AND lookup = :lookup AND target = :target
    AND expires_at > :now
    AND (mode <> 'after_create' OR :target <> '' OR sent_at >= :created_at)
    AND item NOT IN (SELECT value FROM json_each(:seen))
ORDER BY place, id
LIMIT :limit;

-- name: read_kept_by_field
-- By one of the fields; the others are compared.
-- with: kept
FROM pending_fields AS found
CROSS JOIN pending ON pending.id = found.pending
WHERE found.org = :org AND found.name = :name AND found.field = :field AND found.value = :value
    AND pending.target = :target
    AND pending.expires_at > :now
    AND (pending.mode <> 'after_create' OR :target <> '' OR pending.sent_at >= :created_at)
    AND pending.item NOT IN (SELECT value FROM json_each(:seen))
    AND NOT EXISTS (
        SELECT 1
        FROM json_each(:conditions) AS condition
        WHERE NOT EXISTS (
            SELECT 1
            FROM pending_fields AS other
            WHERE other.org = :org AND other.name = :name AND other.field = condition.key AND other.value = condition.value
                AND other.pending = pending.id
        )
    )
ORDER BY pending.place, pending.id
LIMIT :limit;

-- name: find_holders
-- Each with its place in the list of what is asked for.
SELECT asked.key, subscriptions.execution_id, subscriptions.number
FROM json_each(?) AS asked
CROSS JOIN subscriptions INDEXED BY subscriptions_by_lookup
    ON subscriptions.org = asked.value ->> 0 AND subscriptions.kind = 'message' AND subscriptions.name = asked.value ->> 1
    AND subscriptions.fields = '' AND subscriptions.lookup = asked.value ->> 2
CROSS JOIN executions ON executions.execution_id = subscriptions.execution_id AND executions.closed_at IS NULL;

-- name: put_subscriptions
INSERT OR IGNORE INTO subscriptions (
    org, kind, name, execution_id, number, key, conditions, standing, since, created_at, fields, lookup
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_subscription
DELETE FROM subscriptions
WHERE execution_id = ? AND number = ?;

-- name: end_all_subscriptions
DELETE FROM subscriptions
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: take_pending
DELETE FROM pending
WHERE id IN (SELECT value FROM json_each(?));

-- name: take_pending_fields
DELETE FROM pending_fields
WHERE pending IN (SELECT value FROM json_each(?));

-- name: take_over_pending
UPDATE pending
SET target = ?
WHERE target = ? AND target <> '';

-- name: read_ended_kept
-- What is kept for executions that end.
-- with: kept
FROM json_each(?) AS ended
CROSS JOIN pending INDEXED BY pending_by_target ON pending.target = ended.value AND pending.target <> ''
ORDER BY pending.place, pending.id;

-- name: read_ended_starts
-- What is to start under workflow ids that are free now.
-- with: kept
FROM json_each(?) AS ended
CROSS JOIN pending INDEXED BY pending_by_start
    ON pending.org = ended.value ->> 0 AND pending.start_id = ended.value ->> 1 AND pending.start_id <> ''
WHERE NOT EXISTS (
    SELECT 1
    FROM executions INDEXED BY executions_one_open
    WHERE executions.org = pending.org AND executions.workflow_id = pending.start_id AND executions.closed_at IS NULL
)
ORDER BY pending.place, pending.id;

-- name: put_publications
INSERT INTO publications (org, body, fields, origin, number, is_returned, subscribers)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- === publishing =========================================================================================================

-- name: read_starts
SELECT kind, name, workflow, queue, route, version, org, node
FROM starts
WHERE kind = ? AND name = ? AND org IN ('', ?)
ORDER BY kind, name, org, workflow, queue, version, node;

-- name: read_outbox
SELECT org, body, fields, origin, number, is_returned, subscribers, id
FROM publications
WHERE subscribers IS NULL
ORDER BY id;

-- name: find_shapes
-- Each leads to the next by the index: what it costs depends on how many there are, not on how many wait.
WITH RECURSIVE shape (fields) AS (
    SELECT (
        SELECT fields
        FROM subscriptions
        WHERE org = :org AND kind = 'event' AND name = :name
        ORDER BY fields
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT subscriptions.fields
        FROM subscriptions
        WHERE org = :org AND kind = 'event' AND name = :name AND subscriptions.fields > shape.fields
        ORDER BY subscriptions.fields
        LIMIT 1
    )
    FROM shape
    WHERE shape.fields IS NOT NULL
)
SELECT fields FROM shape WHERE fields IS NOT NULL;

-- name: find_waiters
SELECT subscriptions.id, subscriptions.org, subscriptions.execution_id, subscriptions.number, subscriptions.standing,
       executions.route
FROM subscriptions INDEXED BY subscriptions_by_lookup
CROSS JOIN executions ON executions.execution_id = subscriptions.execution_id AND executions.closed_at IS NULL
WHERE subscriptions.org = ? AND subscriptions.kind = ? AND subscriptions.name = ? AND subscriptions.fields = ?
    AND subscriptions.lookup = ? AND subscriptions.execution_id <> ?
    AND subscriptions.since <= ? AND subscriptions.created_at <= ?
ORDER BY subscriptions.id
LIMIT ?;

-- name: find_waits_of
SELECT subscriptions.id, subscriptions.org, subscriptions.execution_id, subscriptions.number, subscriptions.standing,
       executions.route, subscriptions.name, subscriptions.conditions, subscriptions.since
FROM subscriptions INDEXED BY subscriptions_by_number
CROSS JOIN executions ON executions.execution_id = subscriptions.execution_id AND executions.closed_at IS NULL
WHERE subscriptions.execution_id = ? AND subscriptions.kind = 'event'
ORDER BY subscriptions.id;

-- name: find_target
SELECT closed_at IS NULL
FROM executions
WHERE org = ? AND execution_id = ?;

-- name: is_taken_id
-- Whether an execution is open under a workflow id, or a start waits for it.
SELECT EXISTS (
    SELECT 1 FROM executions INDEXED BY executions_one_open WHERE org = :org AND workflow_id = :workflow_id AND closed_at IS NULL
) OR EXISTS (
    SELECT 1
    FROM inbox
    WHERE execution_id = '' AND workflow_id = :workflow_id AND org = :org
        AND substr(body, 1, 15) = CAST('{"type":"start"' AS BLOB)
);

-- name: count_kept
SELECT count(*)
FROM (
    SELECT 1
    FROM pending INDEXED BY pending_by_item
    WHERE org = ? AND kind = ? AND name = ? AND expires_at > ?
    LIMIT ?
);

-- name: count_kept_in_org
SELECT count(*)
FROM (
    SELECT 1
    FROM pending INDEXED BY pending_by_item
    WHERE org = ? AND expires_at > ?
    LIMIT ?
);

-- name: count_subscriptions
SELECT count(*)
FROM (
    SELECT 1
    FROM subscriptions INDEXED BY subscriptions_by_lookup
    WHERE org = ?
    LIMIT ?
);

-- name: count_open_in_org
SELECT count(*)
FROM (
    SELECT 1
    FROM executions INDEXED BY executions_one_open
    WHERE org = ? AND closed_at IS NULL
    LIMIT ?
);

-- name: has_kept
SELECT EXISTS (
    SELECT 1
    FROM pending
    WHERE org = ? AND kind = 'message' AND name = ? AND key = ? AND item = ? AND expires_at > ?
);

-- name: find_older_messages
-- Those of the first kept messages with a key that wait for no start.
SELECT place, id
FROM (
    SELECT place, id, start_id
    FROM pending INDEXED BY pending_by_lookup
    WHERE org = ? AND kind = 'message' AND name = ? AND lookup = ? AND target = '' AND key = ? AND expires_at > ?
    ORDER BY place, id
    LIMIT ?
)
WHERE start_id = '';

-- name: read_kept_messages
-- with: kept
FROM json_each(?) AS asked
CROSS JOIN pending ON pending.id = asked.value AND pending.kind = 'message';

-- name: read_unstarted
-- Each org leads to the next by the index.
WITH RECURSIVE orgs (org) AS (
    SELECT ''
    UNION ALL
    SELECT (SELECT pending.org FROM pending INDEXED BY pending_by_item WHERE pending.org > orgs.org ORDER BY pending.org LIMIT 1)
    FROM orgs
    WHERE orgs.org IS NOT NULL
)
-- with: kept
FROM orgs
CROSS JOIN json_each(?) AS asked
CROSS JOIN pending INDEXED BY pending_by_item
    ON pending.org = orgs.org AND pending.kind = 'message' AND pending.name = asked.value
WHERE pending.start_id = '' AND pending.expires_at > ? AND pending.id > ?
ORDER BY pending.id
LIMIT ?;

-- name: set_pending_starts
UPDATE pending
SET start = ?, start_id = ?
WHERE id = ?;

-- name: put_pending
INSERT INTO pending (
    org, kind, name, key, body, item, sent_at, expires_at, target, fields, start, place, lookup, start_id, mode
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
RETURNING id;

-- name: put_pending_fields
INSERT INTO pending_fields (org, name, field, value, pending)
VALUES (?, ?, ?, ?, ?);

-- name: drop_publications
DELETE FROM publications
WHERE id IN (SELECT value FROM json_each(?));

-- name: read_spread
SELECT org, body, fields, origin, number, is_returned, subscribers, id
FROM publications
WHERE subscribers IS NOT NULL AND id NOT IN (SELECT value FROM json_each(?))
ORDER BY id
LIMIT 1;

-- name: shorten_spread
UPDATE publications
SET subscribers = ?
WHERE id = ?;

-- name: find_subscribers
-- Those of a list that are still there, in its order.
SELECT subscriptions.id, subscriptions.org, subscriptions.execution_id, subscriptions.number, subscriptions.standing,
       executions.route
FROM json_each(?) AS asked
CROSS JOIN subscriptions INDEXED BY subscriptions_by_number
    ON subscriptions.execution_id = asked.value ->> 0 AND subscriptions.number = asked.value ->> 1
CROSS JOIN executions ON executions.execution_id = subscriptions.execution_id AND executions.closed_at IS NULL
ORDER BY asked.key;

-- === outside of batches =================================================================================================

-- name: list_pending
-- with: kept
FROM pending
WHERE org = ? AND kind = ? AND name = ? AND expires_at > ? AND id > ?
ORDER BY id
LIMIT ?;

-- name: remove_pending
DELETE FROM pending
WHERE org = ? AND kind = ? AND name = ? AND item = ?
RETURNING id;

-- name: purge_pending
DELETE FROM pending
WHERE id IN (SELECT id FROM pending WHERE expires_at < ? ORDER BY expires_at, id LIMIT ?)
RETURNING id;

-- name: list_subscriptions
SELECT org, kind, name, execution_id, number, key, conditions, standing, since, created_at
FROM subscriptions
WHERE org = ? AND execution_id = ?
ORDER BY number;

-- name: put_starts
INSERT OR REPLACE INTO starts (kind, name, workflow, queue, route, version, org, node)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: remove_starts
DELETE FROM starts
WHERE node IN (SELECT value FROM json_each(?));

-- name: remove_subscriptions
DELETE FROM subscriptions
WHERE execution_id IN (
    SELECT executions.execution_id
    FROM json_each(?) AS ended
    CROSS JOIN executions ON executions.id = ended.value
);

-- === after an unknown outcome, and checking =============================================================================

-- name: has_publication
SELECT EXISTS (SELECT 1 FROM publications WHERE id = ?);

-- name: has_pending
SELECT EXISTS (SELECT 1 FROM pending WHERE id = ?);

-- name: has_pending_start
SELECT EXISTS (SELECT 1 FROM pending WHERE id = ? AND start_id = ?);

-- name: check_subscriptions
SELECT subscriptions.execution_id, subscriptions.number, executions.status, executions.closed_at,
       subscriptions.conditions, subscriptions.key, subscriptions.fields, subscriptions.lookup
FROM subscriptions
LEFT JOIN executions ON executions.execution_id = subscriptions.execution_id
ORDER BY subscriptions.execution_id, subscriptions.number;

-- name: check_pending
-- Overdue is what expired a day before a node was seen last that has run for longer.
SELECT pending.id, pending.body, pending.target, executions.status, executions.closed_at, EXISTS (
    SELECT 1
    FROM nodes
    WHERE nodes.started_at < nodes.seen_at - 86400000000 AND pending.expires_at < nodes.seen_at - 86400000000
), pending.fields, (
    SELECT json_group_array(json_array(field, value))
    FROM pending_fields
    WHERE pending_fields.pending = pending.id
), pending.start
FROM pending
LEFT JOIN executions ON executions.execution_id = pending.target
ORDER BY pending.id;

-- name: check_leftovers
-- Rows that belong to others which are not there.
SELECT DISTINCT 'fields of kept publication', CAST(pending AS TEXT)
FROM pending_fields
WHERE NOT EXISTS (SELECT 1 FROM pending WHERE pending.id = pending_fields.pending)
UNION ALL
SELECT DISTINCT 'keys of human task', task_id
FROM task_keys
WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id = task_keys.task_id)
UNION ALL
SELECT DISTINCT 'events of human task', task_id
FROM task_events
WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id = task_events.task_id);

-- name: check_publications
SELECT id, body, fields, subscribers FROM publications ORDER BY id;
