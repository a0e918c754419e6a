-- Heartbeats, in-flight marks, locks of nodes, and what users' own transactions need; see `queries.sql`.

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
    coalesce((SELECT number FROM holdfast.settings WHERE id = 1), 0),
    EXISTS (SELECT 1 FROM holdfast.publications),
    EXISTS (SELECT 1 FROM holdfast.questions),
    (
        SELECT min(next.due)
        FROM unnest($4::text[]) AS mine (route)
        CROSS JOIN LATERAL (
            SELECT schedules.due
            FROM holdfast.schedules
            WHERE schedules.route = mine.route AND schedules.due IS NOT NULL
            ORDER BY schedules.due
            LIMIT 1
        ) AS next
    ),
    before.*
FROM own
CROSS JOIN (
    SELECT array_agg(node), array_agg(seen_at), array_agg(started_at), array_agg(has_left), array_agg(details)
    FROM (SELECT * FROM holdfast.nodes ORDER BY node) AS sorted
) AS before;

-- name: read_time
-- For clients, which send no heartbeats.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: find_timeline
SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);

-- name: list_nodes
SELECT node, seen_at, started_at, has_left, details
FROM holdfast.nodes
ORDER BY node;

-- name: leave
WITH unoffered AS (
    DELETE FROM holdfast.starts WHERE node = $1
)
UPDATE holdfast.nodes SET has_left = true WHERE node = $1;

-- name: expire
-- The node does not leave: others take over as from one whose lease has run out.
UPDATE holdfast.nodes SET seen_at = 0 WHERE node = $1;

-- name: remove_nodes
-- With them go marks of processes that ended ten minutes ago: what they had in flight was claimed since.
WITH outdated AS (
    DELETE FROM holdfast.in_flight
    WHERE marked_at < ((extract(epoch FROM clock_timestamp()) - 600) * 1000000)::bigint
), unoffered AS (
    DELETE FROM holdfast.starts WHERE node = ANY ($1::text[])
)
DELETE FROM holdfast.nodes WHERE node = ANY ($1::text[]);

-- name: mark_in_flight
-- The own mark in place of the last one, and who else marked the same executions at the same versions: it is as old as this
-- statement, so it shows those that held them before.
WITH own AS (
    INSERT INTO holdfast.in_flight (process, slot, execution_ids, versions, marked_at)
    VALUES ($1, $2, $3::text[], $4::bigint[], (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    ON CONFLICT (process, slot) DO UPDATE
    SET execution_ids = excluded.execution_ids, versions = excluded.versions, marked_at = excluded.marked_at
)
SELECT wanted.execution_id, other.process, other.slot
FROM holdfast.in_flight AS other
CROSS JOIN LATERAL unnest(other.execution_ids, other.versions) AS mark (execution_id, version)
JOIN unnest($3::text[], $4::bigint[]) AS wanted (execution_id, version)
    ON wanted.execution_id = mark.execution_id AND wanted.version = mark.version
WHERE other.process <> $1
ORDER BY other.marked_at;

-- name: forget_processes
DELETE FROM holdfast.in_flight WHERE process = ANY ($1::text[]);

-- name: take_lock
-- One that would be held for much longer than anybody takes it for was taken before the clock was set back.
INSERT INTO holdfast.locks AS held (name, node, until)
VALUES ($1, $2, $4)
ON CONFLICT (name) DO UPDATE
SET node = excluded.node, until = excluded.until
WHERE held.node = excluded.node OR held.until <= $3 OR held.until > 2 * $4::bigint - $3::bigint
RETURNING held.node;

-- name: release_lock
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
    INSERT INTO holdfast.inbox (org, execution_id, workflow_id, body, attempts, route, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
)
SELECT pg_notify($8, '');

-- name: notify
SELECT pg_notify($1, '');

-- name: put_input_schemas
INSERT INTO holdfast.input_schemas (digest, body)
SELECT * FROM unnest($1::text[], $2::bytea[])
ON CONFLICT DO NOTHING;

-- name: read_input_schemas
SELECT digest, body
FROM holdfast.input_schemas
WHERE digest = ANY ($1::text[]);
