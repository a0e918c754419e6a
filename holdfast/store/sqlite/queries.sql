-- Every statement of the SQLite store. A list of ids comes as one JSON text. Statements with a plain `VALUES (?, …)` are
-- widened to many rows at once: one step per batch, since Python gives its lock away at each step, and takes long to get it
-- back where other threads are busy.

-- === connections ========================================================================================================

-- name: writer_settings
-- FULL: a commit is on the disk when it returns. Checkpoints are made aside (see `checkpoints`); the automatic one is for
-- the day that those do not keep up, 64 MB behind. An idle cache page costs nothing, a missing one a read: 64 MB of them.
PRAGMA busy_timeout = 20;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 16384;
PRAGMA cache_size = -65536;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;

-- name: reader_settings
PRAGMA busy_timeout = 20;
PRAGMA query_only = ON;
PRAGMA cache_size = -16384;
PRAGMA trusted_schema = OFF;

-- name: checkpointer_settings
PRAGMA busy_timeout = 20;
PRAGMA synchronous = FULL;

-- name: use_write_ahead_log
PRAGMA journal_mode = WAL;

-- name: read_schema_version
PRAGMA user_version;

-- name: checkpoint
PRAGMA wal_checkpoint(PASSIVE);

-- name: checkpoint_and_truncate
PRAGMA wal_checkpoint(TRUNCATE);

-- === transactions =======================================================================================================

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- === claiming ===========================================================================================================

-- name: read_executions
-- The columns of ExecutionRow in its order, then what `known` keeps.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route, id, last_turn
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: read_places
SELECT execution_id, id, last_turn, state_version, org
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?)) AND closed_at IS NULL;

-- name: resolve_workflow_ids
SELECT executions.org, executions.workflow_id, executions.execution_id
FROM json_each(?) AS asked
CROSS JOIN executions
    ON executions.org = json_extract(asked.value, '$[0]')
    AND executions.workflow_id = json_extract(asked.value, '$[1]')
    AND executions.closed_at IS NULL;

-- name: find_waiting
-- To whom envelopes go, the oldest first; the caller stops reading when it has enough.
SELECT org, execution_id, workflow_id
FROM inbox
WHERE execution_id NOT IN (SELECT value FROM json_each(:skip))
ORDER BY id;

-- name: find_due
-- Whose timers are due, the earliest first; the caller stops reading when it has enough.
SELECT org, execution_id
FROM timers
WHERE due <= :due_before AND execution_id NOT IN (SELECT value FROM json_each(:skip))
ORDER BY due;

-- name: find_waiting_on_routes
SELECT org, execution_id, workflow_id
FROM inbox
WHERE execution_id NOT IN (SELECT value FROM json_each(:skip))
    AND (route = '' OR route IN (SELECT value FROM json_each(:routes)))
ORDER BY id;

-- name: find_due_on_routes
SELECT org, execution_id
FROM timers
WHERE due <= :due_before
    AND execution_id NOT IN (SELECT value FROM json_each(:skip))
    AND (route = '' OR route IN (SELECT value FROM json_each(:routes)))
ORDER BY due;

-- name: read_inbox
SELECT org, execution_id, workflow_id, body, id, attempts, route
FROM inbox
WHERE execution_id IN (SELECT value FROM json_each(:execution_ids)) AND execution_id <> ''
UNION ALL
SELECT org, execution_id, workflow_id, body, id, attempts, route
FROM inbox
WHERE execution_id = ''
    AND workflow_id IN (SELECT json_extract(value, '$[1]') FROM json_each(:workflow_ids))
    AND (org, workflow_id) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:workflow_ids))
ORDER BY id;

-- name: read_due
SELECT org, execution_id, number, due, attempt, route
FROM timers
WHERE execution_id IN (SELECT value FROM json_each(:execution_ids)) AND due <= :due_before
ORDER BY due, execution_id, number;

-- name: read_inbox_ids
SELECT id, org, execution_id
FROM inbox
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: read_inbox_ids_by_workflow_id
SELECT id, org, workflow_id
FROM inbox
WHERE execution_id = '' AND workflow_id IN (SELECT value FROM json_each(?)) AND route = '';

-- === reading ============================================================================================================

-- name: read_events
-- Asked for as {execution id: sequence}. Walks each history backwards, no further than is asked for.
WITH RECURSIVE walk (id, execution_id, after) AS (
    SELECT executions.last_turn, executions.execution_id, asked.value
    FROM json_each(?) AS asked
    CROSS JOIN executions ON executions.execution_id = asked.key
    UNION ALL
    SELECT events.previous, walk.execution_id, walk.after
    FROM walk
    CROSS JOIN events ON events.id = walk.id
    WHERE events.first > walk.after
)
SELECT walk.execution_id, events.first, events.count, events.at, events.schema, events.body
FROM walk
CROSS JOIN events ON events.id = walk.id
WHERE events.first > walk.after
ORDER BY events.id;

-- name: read_events_page
WITH RECURSIVE walk (id) AS (
    SELECT last_turn FROM executions WHERE execution_id = :execution_id
    UNION ALL
    SELECT events.previous
    FROM walk
    CROSS JOIN events ON events.id = walk.id
    WHERE events.first > :after
)
SELECT :execution_id, events.first, events.count, events.at, events.schema, events.body
FROM walk
CROSS JOIN events ON events.id = walk.id
WHERE events.first > :after
ORDER BY events.id
LIMIT :limit;

-- name: read_last_events
SELECT executions.execution_id, events.first, events.count, events.at, events.schema, events.body
FROM executions
CROSS JOIN events ON events.id = executions.last_turn
WHERE executions.execution_id = ?;

-- name: read_latest
-- The open one is always the newest: another is only let in after it has closed.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions
WHERE org = ? AND workflow_id = ?
ORDER BY id DESC
LIMIT 1;

-- name: read_request
SELECT org, kind, key, execution_id, sequence, expires_at
FROM requests
WHERE org = ? AND kind = ? AND key = ? AND expires_at > ?;

-- name: find_execution
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions
WHERE org = ? AND execution_id = ?;

-- name: list_executions
-- Walks down the index of execution ids, which are ordered by time, until the page is full.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions INDEXED BY executions_by_execution_id
WHERE org = :org
    AND execution_id < :before
    AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
    AND (:workflow IS NULL OR workflow = :workflow)
ORDER BY execution_id DESC
LIMIT :limit;

-- name: list_open_executions
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions INDEXED BY executions_open
WHERE org = :org
    AND closed_at IS NULL
    AND execution_id < :before
    AND status IN (SELECT value FROM json_each(:statuses))
    AND (:workflow IS NULL OR workflow = :workflow)
ORDER BY execution_id DESC
LIMIT :limit;

-- name: list_executions_of_workflow_id
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions INDEXED BY executions_by_workflow_id
WHERE org = :org
    AND workflow_id = :workflow_id
    AND execution_id < :before
    AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
    AND (:workflow IS NULL OR workflow = :workflow)
    AND (:parent_id IS NULL OR parent_id = :parent_id)
ORDER BY execution_id DESC
LIMIT :limit;

-- name: list_children
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions INDEXED BY executions_by_parent
WHERE org = :org
    AND parent_id = :parent_id
    AND execution_id < :before
    AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
    AND (:workflow IS NULL OR workflow = :workflow)
ORDER BY execution_id DESC
LIMIT :limit;

-- name: list_orphans
-- `node` holds ids joined by commas: as a JSON list, they can be looked through.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions INDEXED BY executions_open
WHERE closed_at IS NULL
    AND execution_id > :after
    AND node IS NOT NULL
    AND EXISTS (
        SELECT 1
        FROM json_each('[' || replace(json_quote(node), ',', '","') || ']') AS named
        WHERE named.value NOT IN (SELECT value FROM json_each(:alive))
    )
ORDER BY execution_id
LIMIT :limit;

-- name: list_blocked
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions INDEXED BY executions_blocked
WHERE status = 'blocked' AND execution_id > :after
ORDER BY execution_id
LIMIT :limit;

-- name: list_dead_letters
SELECT org, execution_id, workflow_id, body, reason, node, at, attempts, id
FROM dead_letters
WHERE org = ? AND id > ?
ORDER BY id
LIMIT ?;

-- name: find_next_due
SELECT due
FROM timers
WHERE execution_id NOT IN (SELECT value FROM json_each(?))
ORDER BY due
LIMIT 1;

-- name: find_next_due_on_routes
SELECT due
FROM timers
WHERE execution_id NOT IN (SELECT value FROM json_each(:skip))
    AND (route = '' OR route IN (SELECT value FROM json_each(:routes)))
ORDER BY due
LIMIT 1;

-- name: has_waiting_on_routes
SELECT EXISTS (SELECT 1 FROM inbox WHERE route = '' OR route IN (SELECT value FROM json_each(?)));

-- name: find_closed
SELECT execution_id
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?)) AND closed_at IS NOT NULL;

-- name: find_oldest_closed
SELECT min(closed_at)
FROM executions
WHERE closed_at IS NOT NULL;

-- name: count_open
SELECT status, count(*)
FROM executions INDEXED BY executions_open
WHERE closed_at IS NULL
GROUP BY status;

-- name: count_queued
SELECT (SELECT count(*) FROM timers), (SELECT count(*) FROM inbox), (SELECT count(*) FROM dead_letters);

-- name: list_nodes
SELECT node, seen_at, started_at, has_left, details
FROM nodes
ORDER BY node;

-- === what the only writer keeps in memory ===============================================================================

-- name: read_counters
SELECT (SELECT ifnull(max(id), 0) FROM executions),
       (SELECT ifnull(max(id), 0) FROM events),
       (SELECT count(*) FROM inbox),
       (SELECT count(*) FROM activities),
       (SELECT min(due) FROM timers);

-- name: read_earliest_due
SELECT min(due) FROM timers;

-- === writing turns ======================================================================================================

-- name: update_executions
-- Sets no column of the indexes of what is open: they would be written anew each time, changed or not.
WITH new (status, state_version, sequence, node, updated_at, code_version, details, route, last_turn, id, expected) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE executions
SET status = new.status,
    state_version = new.state_version,
    sequence = new.sequence,
    node = new.node,
    updated_at = new.updated_at,
    code_version = new.code_version,
    details = new.details,
    route = new.route,
    last_turn = new.last_turn
FROM new
WHERE executions.id = new.id AND executions.state_version = new.expected;

-- name: close_executions
WITH new (
    status, state_version, sequence, node, updated_at, code_version, details, route, last_turn, id, expected, closed_at
) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE executions
SET status = new.status,
    state_version = new.state_version,
    sequence = new.sequence,
    node = new.node,
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
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
    created_at, updated_at, closed_at, details, route, last_turn, id
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: insert_closed_executions
-- Those that close in their first turn: the index of what is open does not see them, so look there first.
INSERT INTO executions (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, node, parent_id,
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

-- name: put_timers
INSERT OR REPLACE INTO timers (org, execution_id, number, due, attempt, route)
VALUES (?, ?, ?, ?, ?, ?);

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

-- name: put_inbox
INSERT INTO inbox (org, execution_id, workflow_id, body, attempts, route)
VALUES (?, ?, ?, ?, ?, ?);

-- name: put_dead_letters
INSERT INTO dead_letters (org, execution_id, workflow_id, body, reason, node, at, attempts)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_requests
INSERT OR REPLACE INTO requests (org, kind, key, execution_id, sequence, expires_at)
VALUES (?, ?, ?, ?, ?, ?);

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
-- Those of one route that nobody has, in the order of the index, which is that of their ids.
SELECT id, org, execution_id, number, attempt, route, body
FROM activities
WHERE node IS NULL AND route = ?
ORDER BY id
LIMIT ?;

-- name: has_offers
SELECT EXISTS (
    SELECT 1
    FROM json_each(?) AS asked
    CROSS JOIN activities ON activities.node IS NULL AND activities.route = asked.value
);

-- name: take_offer
UPDATE activities
SET node = ?
WHERE id = ?;

-- name: end_waiting
-- The timer that watched over an offer's waiting; an activity's own timers have attempts above 0.
DELETE FROM timers
WHERE execution_id = ? AND number = ? AND attempt < 0;

-- name: list_lost_offers
SELECT org, execution_id, number, attempt, route, body, node
FROM activities INDEXED BY activities_by_node
WHERE node IS NOT NULL AND node NOT IN (SELECT value FROM json_each(:alive))
ORDER BY id
LIMIT :limit;

-- name: list_taken
SELECT execution_id, number, attempt
FROM activities
WHERE node = ?;

-- === writing outside of batches =========================================================================================

-- name: read_open_ids
SELECT org, execution_id, route
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?)) AND closed_at IS NULL;

-- name: replace_execution
UPDATE executions
SET workflow_id = ?, workflow = ?, code_version = ?, queue = ?, status = ?, state_version = ?, sequence = ?, node = ?,
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
INSERT INTO locks (name, node, until)
VALUES (:name, :node, :until)
ON CONFLICT (name) DO UPDATE SET node = excluded.node, until = excluded.until
WHERE locks.node = excluded.node OR locks.until <= :now;

-- name: give_lock
DELETE FROM locks
WHERE name = ? AND node = ?;

-- name: read_last_id
SELECT last_insert_rowid();

-- === removing what is old ===============================================================================================

-- name: find_old
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

-- name: remove_requests
DELETE FROM requests
WHERE execution_id IN (
    SELECT executions.execution_id
    FROM json_each(?) AS ended
    CROSS JOIN executions ON executions.id = ended.value
);

-- name: remove_executions
DELETE FROM executions
WHERE id IN (SELECT value FROM json_each(?)) AND closed_at IS NOT NULL;

-- === after an unknown outcome ===========================================================================================

-- name: has_version
SELECT EXISTS (SELECT 1 FROM executions WHERE execution_id = ? AND state_version >= ?);

-- name: has_arrival
SELECT EXISTS (SELECT 1 FROM inbox WHERE id = ?);

-- name: is_taken
SELECT EXISTS (SELECT 1 FROM activities WHERE id = ? AND node IS NOT NULL);

-- name: has_request
SELECT EXISTS (SELECT 1 FROM requests WHERE org = ? AND kind = ? AND key = ?);

-- name: has_dead_letter
SELECT EXISTS (SELECT 1 FROM dead_letters WHERE id = ?);

-- === checking ===========================================================================================================

-- name: check_pages
PRAGMA integrity_check;

-- name: check_executions
SELECT execution_id, status, closed_at, details
FROM executions
ORDER BY id;

-- name: check_histories
SELECT executions.execution_id, executions.sequence, executions.last_turn,
       events.id, events.previous, events.first, events.count, events.schema, events.body
FROM executions
LEFT JOIN events ON events.execution = executions.id
ORDER BY executions.id, events.first;

-- name: check_histories_without_row
SELECT DISTINCT execution
FROM events
WHERE execution NOT IN (SELECT id FROM executions);

-- name: check_open_twice
-- The unique index forbids it, so look past the index.
SELECT org, workflow_id, group_concat(execution_id, ', ')
FROM executions NOT INDEXED
WHERE closed_at IS NULL
GROUP BY org, workflow_id
HAVING count(*) > 1;

-- name: check_timers
SELECT timers.execution_id, timers.number, executions.status
FROM timers
LEFT JOIN executions ON executions.execution_id = timers.execution_id
WHERE executions.id IS NULL OR executions.closed_at IS NOT NULL;

-- name: check_offers
SELECT activities.execution_id, activities.number, executions.status
FROM activities
LEFT JOIN executions ON executions.execution_id = activities.execution_id
WHERE executions.id IS NULL OR executions.closed_at IS NOT NULL;

-- name: check_inbox
SELECT id, body
FROM inbox;
