-- The statements that write; see `queries.sql` for how they are written.

-- === writing turns ======================================================================================================

-- name: update_executions
-- Sets no column of the indexes of what is open: they would be written anew each time, changed or not.
WITH new (status, state_version, sequence, nodes, updated_at, code_version, details, route, last_turn, id, expected) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE executions
SET status = new.status,
    state_version = new.state_version,
    sequence = new.sequence,
    nodes = new.nodes,
    updated_at = new.updated_at,
    code_version = new.code_version,
    details = new.details,
    route = new.route,
    last_turn = new.last_turn
FROM new
WHERE executions.id = new.id AND executions.state_version = new.expected;

-- name: close_executions
WITH new (
    status, state_version, sequence, nodes, updated_at, code_version, details, route, last_turn, id, expected, closed_at
) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE executions
SET status = new.status,
    state_version = new.state_version,
    sequence = new.sequence,
    nodes = new.nodes,
    updated_at = new.updated_at,
    code_version = new.code_version,
    details = new.details,
    route = new.route,
    last_turn = new.last_turn,
    closed_at = new.closed_at
FROM new
WHERE executions.id = new.id AND executions.state_version = new.expected;

-- name: insert_executions
-- One whose workflow id is open, or whose execution id is taken, is left out: a batch stands or falls by turns.
INSERT INTO executions (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
    created_at, updated_at, closed_at, details, route, last_turn, id
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: insert_closed_executions
-- Those that close in their first turn: the index of what is open does not see them, so look there first.
INSERT INTO executions (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
    created_at, updated_at, closed_at, details, route, last_turn, id
)
SELECT *
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS new
WHERE NOT EXISTS (
    SELECT 1 FROM executions WHERE org = new.column1 AND workflow_id = new.column3 AND closed_at IS NULL
)
ON CONFLICT DO NOTHING;

-- name: read_inserted
SELECT id FROM executions WHERE id >= ?;

-- name: append_events
INSERT INTO events (id, execution, previous, first, count, at, schema, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_attributes
INSERT OR IGNORE INTO attributes (org, kind, name, value, execution_id)
VALUES (?, ?, ?, ?, ?);

-- name: end_state_attributes
DELETE FROM attributes
WHERE execution_id = ? AND org = ? AND kind = 'state' AND name = ?;

-- name: put_timers
INSERT OR REPLACE INTO timers (org, execution_id, number, due, kind, attempt, route)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: end_timers
-- Joined to the table itself: only a list that comes from columns is looked up by the whole key.
DELETE FROM timers
WHERE (execution_id, number) IN (
    SELECT timers.execution_id, timers.number
    FROM (VALUES (?, ?)) AS ended
    CROSS JOIN timers ON timers.execution_id = ended.column1 AND timers.number = ended.column2
);

-- name: end_all_timers
DELETE FROM timers
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: consume_inbox
DELETE FROM inbox
WHERE id IN (SELECT value FROM json_each(?));

-- name: fail_inbox
UPDATE inbox
SET attempts = attempts + 1
WHERE id IN (SELECT value FROM json_each(?));

-- name: reroute_inbox
UPDATE inbox
SET route = ?
WHERE id = ?;

-- name: readdress_inbox
-- Its id stays, and with it its place in the order of arrival.
UPDATE inbox
SET execution_id = ?, workflow_id = ?, body = ?, route = ?
WHERE id = ?;

-- name: adopt_inbox
-- Ids stay, and with them the order of arrival.
UPDATE inbox
SET execution_id = ?, workflow_id = '', route = ?
WHERE id IN (SELECT value FROM json_each(?));

-- name: put_inbox
INSERT INTO inbox (org, execution_id, workflow_id, body, attempts, route, at)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: put_dead_letters
INSERT INTO dead_letters (org, execution_id, workflow_id, body, reason, node, at, attempts)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_requests
INSERT OR REPLACE INTO requests (org, kind, key, execution_id, sequence, expires_at, answer)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: forget_requests
-- A few at a time, with those that come in: the table does not outgrow what is still valid.
DELETE FROM requests
WHERE (org, kind, key) IN (SELECT org, kind, key FROM requests WHERE expires_at <= ? ORDER BY expires_at LIMIT ?);

-- === offered activities =================================================================================================

-- name: put_offers
INSERT INTO activities (org, execution_id, number, attempt, route, body, node)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: end_offer
DELETE FROM activities
WHERE execution_id = ? AND number = ?;

-- name: end_all_offers
DELETE FROM activities
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: find_offers
-- Those of one route that nobody has, in the order of the index, which is that of their ids. Paused queues are left out.
SELECT id, org, execution_id, number, attempt, route, body
FROM activities
WHERE node IS NULL AND route = ?
    AND NOT EXISTS (
        SELECT 1
        FROM pauses
        WHERE pauses.org = activities.org AND pauses.kind = 'queue'
            AND pauses.name = substr(activities.route, 1, instr(activities.route, char(9)) - 1)
            AND pauses.ended_at IS NULL
    )
ORDER BY id
LIMIT ?;

-- name: has_offers
SELECT EXISTS (
    SELECT 1
    FROM json_each(?) AS asked
    CROSS JOIN activities ON activities.node IS NULL AND activities.route = asked.value
);

-- name: lock_offers
SELECT execution_id, number
FROM activities
WHERE execution_id = ? AND number = ? AND node IS NULL;

-- name: take_offer
UPDATE activities
SET node = ?
WHERE id = ?;

-- name: end_waiting
-- The timer that watched over an offer's waiting, and none of the activity's own.
DELETE FROM timers
WHERE execution_id = ? AND number = ? AND kind = 'offer';

-- name: list_lost_offers
SELECT org, execution_id, number, attempt, route, body, node
FROM activities INDEXED BY activities_by_node
WHERE node IS NOT NULL AND node NOT IN (SELECT value FROM json_each(:alive))
ORDER BY id
LIMIT :limit;

-- name: list_offers
SELECT org, execution_id, number, attempt, route, body, node
FROM activities
WHERE execution_id = ?
ORDER BY number;

-- name: list_taken
SELECT execution_id, number, attempt
FROM activities
WHERE node = ?;

-- === writing outside of batches =========================================================================================

-- name: read_open_ids
SELECT org, execution_id, route
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?)) AND closed_at IS NULL;

-- name: hold_open
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions
WHERE org = ? AND execution_id = ? AND closed_at IS NULL;

-- name: hold_open_by_workflow_id
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions
WHERE org = ? AND workflow_id = ? AND closed_at IS NULL;

-- name: replace_execution
UPDATE executions
SET workflow_id = ?, workflow = ?, code_version = ?, queue = ?, status = ?, state_version = ?, sequence = ?, nodes = ?,
    parent_id = ?, created_at = ?, updated_at = ?, closed_at = ?, details = ?, route = ?
WHERE org = ? AND execution_id = ? AND state_version = ?;

-- name: take_dead_letters
DELETE FROM dead_letters
WHERE org = :org AND id IN (SELECT value FROM json_each(:ids))
RETURNING id, org, execution_id, workflow_id, body;

-- name: put_node
INSERT OR REPLACE INTO nodes (node, seen_at, started_at, has_left, details)
VALUES (?, ?, ?, ?, ?);

-- name: mark_node_left
UPDATE nodes
SET has_left = 1
WHERE node = ?;

-- name: remove_nodes
DELETE FROM nodes
WHERE node IN (SELECT value FROM json_each(?));

-- name: take_lock
-- One that would be held for much longer than anybody takes it for was taken before the clock was set back.
INSERT INTO locks (name, node, until)
VALUES (:name, :node, :until)
ON CONFLICT (name) DO UPDATE SET node = excluded.node, until = excluded.until
WHERE locks.node = excluded.node OR locks.until <= :now OR locks.until > 2 * :until - :now;

-- name: release_lock
DELETE FROM locks
WHERE name = ? AND node = ?;

-- name: read_last_id
SELECT last_insert_rowid();

-- === removing what is old ===============================================================================================

-- name: find_closed_before
SELECT id, sequence
FROM executions INDEXED BY executions_closed
WHERE closed_at < ?
ORDER BY closed_at
LIMIT ?;

-- name: remove_events
-- Histories have no index: they are followed from their ends.
WITH RECURSIVE old (id, previous) AS (
    SELECT events.id, events.previous
    FROM json_each(?) AS ended
    CROSS JOIN executions ON executions.id = ended.value
    CROSS JOIN events ON events.id = executions.last_turn
    UNION ALL
    SELECT events.id, events.previous
    FROM old
    CROSS JOIN events ON events.id = old.previous
)
DELETE FROM events
WHERE id IN (SELECT id FROM old);

-- name: hand_on_start_keys
-- The key of a start stands for an execution: it goes on to the one that is open under the workflow id, if there is one.
UPDATE requests
SET execution_id = (
    SELECT open.execution_id
    FROM executions AS ended
    CROSS JOIN executions AS open INDEXED BY executions_one_open
        ON open.org = ended.org AND open.workflow_id = ended.workflow_id AND open.closed_at IS NULL
    WHERE ended.execution_id = requests.execution_id
)
WHERE kind IN ('start', 'start_request') AND execution_id IN (
    SELECT ended.execution_id
    FROM json_each(?) AS purged
    CROSS JOIN executions AS ended ON ended.id = purged.value
    CROSS JOIN executions AS open INDEXED BY executions_one_open
        ON open.org = ended.org AND open.workflow_id = ended.workflow_id AND open.closed_at IS NULL
);

-- name: remove_requests
-- While an execution is open under the workflow id, a repeated call would reach it: then they stay until they expire.
DELETE FROM requests
WHERE execution_id IN (
    SELECT ended.execution_id
    FROM json_each(?) AS purged
    CROSS JOIN executions AS ended ON ended.id = purged.value
    WHERE NOT EXISTS (
        SELECT 1
        FROM executions AS open INDEXED BY executions_one_open
        WHERE open.org = ended.org AND open.workflow_id = ended.workflow_id AND open.closed_at IS NULL
    )
);

-- name: remove_attributes
DELETE FROM attributes
WHERE execution_id IN (
    SELECT executions.execution_id
    FROM json_each(?) AS ended
    CROSS JOIN executions ON executions.id = ended.value
);

-- name: remove_executions
DELETE FROM executions
WHERE id IN (SELECT value FROM json_each(?)) AND closed_at IS NOT NULL;

-- name: purge_dead_letters
-- Ids grow with time: the first are the oldest, and no more than those are looked at.
DELETE FROM dead_letters
WHERE id IN (
    SELECT id
    FROM (SELECT id, at FROM dead_letters ORDER BY id LIMIT :limit)
    WHERE at < :before
);

-- === input schemas ======================================================================================================

-- name: put_input_schemas
INSERT OR IGNORE INTO input_schemas (digest, body)
VALUES (?, ?);

-- name: read_input_schemas
SELECT digest, body
FROM input_schemas
WHERE digest IN (SELECT value FROM json_each(?));
