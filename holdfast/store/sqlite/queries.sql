-- The statements of the SQLite store that claim and read; those of other topics are in `queries_….sql` beside it.
--
-- A list of ids comes as one JSON text. Statements with a plain `VALUES (?, …)` are
-- widened to many rows at once: one step per batch, since Python gives its lock away at each step, and takes long to get it
-- back where other threads are busy.

-- === connections ========================================================================================================

-- name: writer_settings
-- FULL: a commit is on the disk when it returns. Checkpoints are made aside (see `checkpoints`); the automatic one is for
-- the day that those do not keep up, 64 MB behind. A log that begins anew is cut to 32 MB, so that its size shows how much it
-- holds. An idle cache page costs nothing, a missing one a read: 64 MB of them.
PRAGMA busy_timeout = 20;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 16384;
PRAGMA journal_size_limit = 33554432;
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

-- name: read_application_id
PRAGMA application_id;

-- name: read_schema_version
PRAGMA user_version;

-- name: count_pages
PRAGMA page_count;

-- name: read_page_size
PRAGMA page_size;

-- name: limit_pages
-- Without a value it tells the limit.
PRAGMA max_page_count

-- name: checkpoint
PRAGMA wal_checkpoint(PASSIVE);

-- name: checkpoint_and_truncate
PRAGMA wal_checkpoint(TRUNCATE);

-- === transactions =======================================================================================================

-- name: begin
BEGIN IMMEDIATE

-- name: begin_reading
BEGIN

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- === claiming ===========================================================================================================

-- name: read_executions
-- The columns of ExecutionRow in its order, then what `WriterCache` keeps beside them.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route, id, last_turn
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: read_positions
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
WHERE due <= :due_until AND execution_id NOT IN (SELECT value FROM json_each(:skip))
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
WHERE due <= :due_until
    AND execution_id NOT IN (SELECT value FROM json_each(:skip))
    AND (route = '' OR route IN (SELECT value FROM json_each(:routes)))
ORDER BY due;

-- name: read_inbox
SELECT org, execution_id, workflow_id, body, id, attempts, route, at
FROM inbox
WHERE execution_id IN (SELECT value FROM json_each(:execution_ids)) AND execution_id <> ''
UNION ALL
SELECT org, execution_id, workflow_id, body, id, attempts, route, at
FROM inbox
WHERE execution_id = ''
    AND workflow_id IN (SELECT json_extract(value, '$[1]') FROM json_each(:workflow_ids))
    AND (org, workflow_id) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:workflow_ids))
ORDER BY id;

-- name: read_withheld
-- Of what waits for executions that take no turns, asked for as {execution id: route, or null}: what does not go by that route, and
-- short rows that begin as orders do. Of a long body only the length is looked at, and `route`, which lies behind it, only if asked for.
SELECT inbox.org, inbox.execution_id, inbox.workflow_id, inbox.body, inbox.id, inbox.attempts, inbox.route, inbox.at
FROM json_each(:routes) AS asked
CROSS JOIN inbox ON inbox.execution_id = asked.key
WHERE (asked.value IS NOT NULL AND inbox.route <> asked.value)
    OR (
        length(:prefix) > 0
        AND length(inbox.body) <= :longest
        AND substr(inbox.body, 1, length(:prefix)) = :prefix
    );

-- name: read_due
SELECT org, execution_id, number, due, kind, attempt, route
FROM timers
WHERE execution_id IN (SELECT value FROM json_each(:execution_ids)) AND due <= :due_until
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

-- name: count_waiting
SELECT count(*) FROM (SELECT 1 FROM inbox WHERE execution_id = ? LIMIT ?);

-- name: read_latest
-- The open one is always the newest: another is only let in after it has closed.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions
WHERE org = ? AND workflow_id = ?
ORDER BY id DESC
LIMIT 1;

-- name: read_request
SELECT org, kind, key, execution_id, sequence, expires_at, answer
FROM requests
WHERE org = ? AND kind = ? AND key = ? AND expires_at > ?;

-- name: find_execution
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions
WHERE org = ? AND execution_id = ?;

-- name: list_orphans
-- `nodes` is a JSON list of names.
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions INDEXED BY executions_open
WHERE closed_at IS NULL
    AND execution_id > :after
    AND nodes IS NOT NULL
    AND EXISTS (
        SELECT 1
        FROM json_each(nodes) AS named
        WHERE named.value NOT IN (SELECT value FROM json_each(:alive))
    )
ORDER BY execution_id
LIMIT :limit;

-- name: list_held
-- `nodes` is a JSON list of names. The last row of the page comes in any case: there the next page begins.
WITH page AS MATERIALIZED (
    SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
           created_at, updated_at, closed_at, details, route
    FROM executions INDEXED BY executions_open
    WHERE closed_at IS NULL
        AND execution_id > :after
    ORDER BY execution_id
    LIMIT :limit
)
SELECT *
FROM page
WHERE (nodes IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(nodes) AS named WHERE named.value = :node))
    OR execution_id = (SELECT max(execution_id) FROM page)
ORDER BY execution_id;

-- name: list_blocked
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions INDEXED BY executions_blocked
WHERE status = 'blocked' AND execution_id > :after
ORDER BY execution_id
LIMIT :limit;

-- name: list_inbox
SELECT org, execution_id, workflow_id, body, id, attempts, route, at
FROM inbox
WHERE org = :org AND execution_id = :execution_id
UNION ALL
SELECT org, execution_id, workflow_id, body, id, attempts, route, at
FROM inbox
WHERE org = :org AND execution_id = '' AND workflow_id = :workflow_id
ORDER BY id
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

-- name: find_settled
SELECT execution_id, closed_at IS NOT NULL
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?)) AND (closed_at IS NOT NULL OR status = 'blocked');

-- name: find_oldest_closed
SELECT min(closed_at)
FROM executions
WHERE closed_at IS NOT NULL;

-- name: find_oldest_dead_letter
SELECT at
FROM dead_letters
WHERE id = (SELECT min(id) FROM dead_letters);

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
       (SELECT min(due) FROM timers),
       (SELECT count(*) FROM subscriptions),
       (SELECT count(*) FROM pending),
       (SELECT count(*) FROM publications);

-- name: read_earliest_due
SELECT min(due) FROM timers;
