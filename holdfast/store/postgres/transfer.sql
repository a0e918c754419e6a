-- The statements by which everything is taken from a database, or put into one. `holdfast` stands for the schema's name. Pages
-- begin with where the next one goes on, and end with the row that makes them larger than the last parameter allows.

-- === marks ==============================================================================================================

-- name: read_marks
SELECT name, value FROM holdfast.marks;

-- name: add_mark
INSERT INTO holdfast.marks (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name;

-- name: change_mark
UPDATE holdfast.marks SET value = $3 WHERE name = $1 AND value = $2 RETURNING name;

-- name: remove_mark
DELETE FROM holdfast.marks WHERE name = $1 AND value = $2 RETURNING name;

-- name: lacks_mark
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM holdfast.marks WHERE name = $1);

-- name: list_present
-- By the server's clock, which tells when they were seen too.
SELECT node, seen_at, started_at, has_left, details, ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint - seen_at) / 1000000
FROM holdfast.nodes
WHERE NOT has_left
ORDER BY node;

-- === reading ============================================================================================================

-- name: count_rows
SELECT (SELECT count(*) FROM holdfast.executions),
       (SELECT count(*) FROM holdfast.events),
       (SELECT count(*) FROM holdfast.timers),
       (SELECT count(*) FROM holdfast.inbox),
       (SELECT count(*) FROM holdfast.dead_letters),
       (SELECT count(*) FROM holdfast.requests),
       (SELECT count(*) FROM holdfast.activities),
       (SELECT count(*) FROM holdfast.pauses),
       (SELECT count(*) FROM holdfast.schedules),
       (SELECT count(*) FROM holdfast.tasks),
       (SELECT count(*) FROM holdfast.task_events),
       (SELECT count(*) FROM holdfast.subscriptions),
       (SELECT count(*) FROM holdfast.pending),
       (SELECT count(*) FROM holdfast.publications),
       (SELECT count(*) FROM holdfast.starts WHERE node = ''),
       (SELECT count(*) FROM holdfast.resources),
       (SELECT count(*) FROM holdfast.definitions),
       (SELECT count(*) FROM holdfast.incidents);

-- name: page_executions
SELECT id, org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM (
    SELECT *, sum(octet_length(details)) OVER (ORDER BY id) - octet_length(details) AS size_before
    FROM (SELECT * FROM holdfast.executions WHERE id > $1 ORDER BY id LIMIT $2) AS page
) AS measured
WHERE size_before <= $3
ORDER BY id;

-- name: page_histories
SELECT execution, first, execution_id, first, count, at, schema, body
FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY execution, first) - octet_length(body) AS size_before
    FROM (
        SELECT events.*, executions.execution_id
        FROM holdfast.events
        JOIN holdfast.executions ON executions.id = events.execution
        WHERE (events.execution, events.first) > ($1, $2)
        ORDER BY events.execution, events.first
        LIMIT $3
    ) AS page
) AS measured
WHERE size_before <= $4
ORDER BY execution, first;

-- name: page_timers
SELECT execution_id, number, org, execution_id, number, due, kind, attempt, route
FROM holdfast.timers
WHERE (execution_id, number) > ($1, $2)
ORDER BY execution_id, number
LIMIT $3;

-- name: page_inbox
SELECT id, org, execution_id, workflow_id, body, id, attempts, route, at
FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS size_before
    FROM (SELECT * FROM holdfast.inbox WHERE id > $1 ORDER BY id LIMIT $2) AS page
) AS measured
WHERE size_before <= $3
ORDER BY id;

-- name: page_dead_letters
SELECT id, org, execution_id, workflow_id, body, reason, node, at, attempts, id
FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS size_before
    FROM (SELECT * FROM holdfast.dead_letters WHERE id > $1 ORDER BY id LIMIT $2) AS page
) AS measured
WHERE size_before <= $3
ORDER BY id;

-- name: page_requests
SELECT org, kind, key, org, kind, key, execution_id, sequence, expires_at, answer
FROM holdfast.requests
WHERE (org, kind, key) > ($1, $2, $3)
ORDER BY org, kind, key
LIMIT $4;

-- name: page_activities
-- No index leads along their ids: there are never many.
SELECT id, org, execution_id, number, attempt, route, body, node
FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS size_before
    FROM (SELECT * FROM holdfast.activities WHERE id > $1 ORDER BY id LIMIT $2) AS page
) AS measured
WHERE size_before <= $3
ORDER BY id;

-- name: page_pauses
SELECT org, kind, name, org, kind, name, at, by, reason, ended_at
FROM holdfast.pauses
WHERE (org, kind, name) > ($1, $2, $3)
ORDER BY org, kind, name
LIMIT $4;

-- name: page_schedules
SELECT org, schedule_id, org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM (
    SELECT *, sum(octet_length(details)) OVER (ORDER BY org, schedule_id) - octet_length(details) AS size_before
    FROM (
        SELECT * FROM holdfast.schedules WHERE (org, schedule_id) > ($1, $2) ORDER BY org, schedule_id LIMIT $3
    ) AS page
) AS measured
WHERE size_before <= $4
ORDER BY org, schedule_id;

-- name: page_tasks
SELECT task_id, org, task_id, execution_id, number, workflow, workflow_id, name, queue, state, version, assignee, claimer, users,
       groups, roles, priority, due, follow_up, business_key, created_at, updated_at, ended_at, body
FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY task_id) - octet_length(body) AS size_before
    FROM (SELECT * FROM holdfast.tasks WHERE task_id > $1 ORDER BY task_id LIMIT $2) AS page
) AS measured
WHERE size_before <= $3
ORDER BY task_id;

-- name: page_task_events
SELECT task_id, sequence, task_id, sequence, kind, at, actor, groups, body
FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY task_id, sequence) - octet_length(body) AS size_before
    FROM (SELECT * FROM holdfast.task_events WHERE (task_id, sequence) > ($1, $2) ORDER BY task_id, sequence LIMIT $3) AS page
) AS measured
WHERE size_before <= $4
ORDER BY task_id, sequence;

-- name: page_subscriptions
SELECT id, org, kind, name, execution_id, number, key, conditions, standing, since, created_at
FROM holdfast.subscriptions
WHERE id > $1
ORDER BY id
LIMIT $2;

-- name: page_pending
SELECT id, org, kind, name, key, body, item, sent_at, expires_at, target, fields, start, place, id
FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS size_before
    FROM (SELECT * FROM holdfast.pending WHERE id > $1 ORDER BY id LIMIT $2) AS page
) AS measured
WHERE size_before <= $3
ORDER BY id;

-- name: page_publications
SELECT id, org, body, fields, origin, number, is_returned, subscribers, id
FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS size_before
    FROM (SELECT * FROM holdfast.publications WHERE id > $1 ORDER BY id LIMIT $2) AS page
) AS measured
WHERE size_before <= $3
ORDER BY id;

-- name: page_starts
-- Those of deployments: the others are of nodes, which say anew what they offer.
SELECT kind, name, org, workflow, queue, version, kind, name, workflow, queue, route, version, org, node
FROM holdfast.starts
WHERE (kind, name, org, workflow, queue, version) > ($1, $2, $3, $4, $5, $6) AND node = ''
ORDER BY kind, name, org, workflow, queue, version
LIMIT $7;

-- name: page_resources
SELECT org, digest, org, digest, name, kind, data
FROM (
    SELECT *, sum(octet_length(data)) OVER (ORDER BY org, digest) - octet_length(data) AS size_before
    FROM (SELECT * FROM holdfast.resources WHERE (org, digest) > ($1, $2) ORDER BY org, digest LIMIT $3) AS page
) AS measured
WHERE size_before <= $4
ORDER BY org, digest;

-- name: page_definitions
SELECT org, kind, definition_id, version, org, kind, definition_id, version, digest, deployment, deployed_at, state, name,
       version_tag, updated_at, changed, details
FROM holdfast.definitions
WHERE (org, kind, definition_id, version) > ($1, $2, $3, $4::bigint)
ORDER BY org, kind, definition_id, version
LIMIT $5;

-- name: page_incidents
SELECT execution_id, number, org, execution_id, number, workflow, workflow_id, element, element_name, kind, message, at
FROM holdfast.incidents
WHERE (execution_id, number) > ($1, $2::bigint)
ORDER BY execution_id, number
LIMIT $3;

-- === reading one execution ==============================================================================================

-- name: copy_executions
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM holdfast.executions
WHERE execution_id = ANY ($1::text[])
ORDER BY id;

-- name: copy_histories
SELECT executions.execution_id, events.first, events.count, events.at, events.schema, events.body
FROM holdfast.executions
JOIN holdfast.events ON events.execution = executions.id
WHERE executions.execution_id = ANY ($1::text[])
ORDER BY events.execution, events.first;

-- name: copy_timers
SELECT org, execution_id, number, due, kind, attempt, route
FROM holdfast.timers
WHERE execution_id = ANY ($1::text[])
ORDER BY execution_id, number;

-- name: copy_inbox
-- By execution id; or, of an open execution, by workflow id. With the execution each is for.
SELECT executions.execution_id, inbox.org, inbox.execution_id, inbox.workflow_id, inbox.body, inbox.id, inbox.attempts, inbox.route,
       inbox.at
FROM holdfast.executions
JOIN holdfast.inbox
    ON inbox.org = executions.org
    AND (
        inbox.execution_id = executions.execution_id
        OR (inbox.execution_id = '' AND inbox.workflow_id = executions.workflow_id AND executions.closed_at IS NULL)
    )
WHERE executions.execution_id = ANY ($1::text[])
ORDER BY inbox.id;

-- name: copy_activities
SELECT org, execution_id, number, attempt, route, body, node
FROM holdfast.activities
WHERE execution_id = ANY ($1::text[])
ORDER BY id;

-- name: copy_requests
-- Those that an execution answered. With an open one also those that runs before it answered, since repeated calls would reach
-- it: of calls that name an execution ($2), by its ids, whether or not the run is still there; and the keys of the starts ($3) of
-- runs.
SELECT org, kind, key, execution_id, sequence, expires_at, answer
FROM holdfast.requests
WHERE execution_id = ANY ($1::text[])
UNION ALL
SELECT requests.org, requests.kind, requests.key, executions.execution_id, requests.sequence, requests.expires_at, requests.answer
FROM holdfast.executions
CROSS JOIN LATERAL (SELECT executions.workflow_id AS id UNION SELECT executions.execution_id) AS named
JOIN holdfast.requests
    ON requests.org = executions.org
    AND requests.kind = ANY ($2::text[])
    AND requests.key > named.id || chr(10)
    AND requests.key < named.id || chr(11)
WHERE executions.execution_id = ANY ($1::text[])
    AND executions.closed_at IS NULL
    AND requests.execution_id <> executions.execution_id
UNION ALL
SELECT requests.org, requests.kind, requests.key, executions.execution_id, requests.sequence, requests.expires_at, requests.answer
FROM holdfast.executions
JOIN holdfast.executions AS earlier
    ON earlier.org = executions.org AND earlier.workflow_id = executions.workflow_id AND earlier.id < executions.id
JOIN holdfast.requests ON requests.execution_id = earlier.execution_id
WHERE executions.execution_id = ANY ($1::text[])
    AND executions.closed_at IS NULL
    AND requests.kind = ANY ($3::text[])
ORDER BY 1, 2, 3;

-- name: copy_tasks
SELECT org, task_id, execution_id, number, workflow, workflow_id, name, queue, state, version, assignee, claimer, users,
       groups, roles, priority, due, follow_up, business_key, created_at, updated_at, ended_at, body
FROM holdfast.tasks
WHERE execution_id = ANY ($1::text[])
ORDER BY task_id;

-- name: copy_task_events
-- With the execution each is for.
SELECT tasks.execution_id, task_events.task_id, sequence, kind, at, actor, task_events.groups, task_events.body
FROM holdfast.tasks
INNER JOIN holdfast.task_events ON task_events.task_id = tasks.task_id
WHERE tasks.execution_id = ANY ($1::text[])
ORDER BY tasks.task_id, sequence;

-- name: copy_subscriptions
SELECT org, kind, name, execution_id, number, key, conditions, standing, since, created_at
FROM holdfast.subscriptions
WHERE execution_id = ANY ($1::text[])
ORDER BY id;

-- name: copy_incidents
SELECT org, execution_id, number, workflow, workflow_id, element, element_name, kind, message, at
FROM holdfast.incidents
WHERE execution_id = ANY ($1::text[])
ORDER BY execution_id, number;

-- name: copy_pending
SELECT org, kind, name, key, body, item, sent_at, expires_at, target, fields, start, place, id
FROM holdfast.pending
WHERE target = ANY ($1::text[]) AND target <> ''
ORDER BY id;

-- name: copy_publications
-- No index leads to them: there are never many.
SELECT org, body, fields, origin, number, is_returned, subscribers, id
FROM holdfast.publications
WHERE origin = ANY ($1::text[]) AND subscribers IS NULL AND NOT is_returned
ORDER BY id;

-- name: copy_spreads
-- What has yet to reach subscribers.
SELECT org, body, fields, origin, number, is_returned, subscribers, id
FROM holdfast.publications
WHERE subscribers IS NOT NULL
ORDER BY id;

-- === writing ============================================================================================================

-- name: find_last_id
SELECT coalesce(max(id), 0) FROM holdfast.executions;

-- name: find_numbers
SELECT execution_id, id FROM holdfast.executions WHERE execution_id = ANY ($1::text[]);

-- name: lock_workflow_id
-- As who starts one does, but waiting for it.
SELECT pg_advisory_xact_lock(hashtextextended($1 || chr(10) || $2, 2));

-- name: find_taken
SELECT EXISTS (SELECT 1 FROM holdfast.executions WHERE execution_id = $3),
       EXISTS (SELECT 1 FROM holdfast.executions WHERE org = $1 AND workflow_id = $2 AND closed_at IS NULL);

-- name: add_execution
INSERT INTO holdfast.executions (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
    created_at, updated_at, closed_at, details, route, is_blocked
)
VALUES ($1, $2, $3, $4, $5, $6, $7::text, $8, $9, $10, $11, $12, $13, $14, $15, $16, $7::text = 'blocked')
RETURNING id;

-- name: add_pending_fields
INSERT INTO holdfast.pending_fields (org, name, field, value, pending)
SELECT pending.org, pending.name, one.key, one.value, pending.id
FROM holdfast.pending
CROSS JOIN LATERAL json_each_text(pending.fields::json) AS one
WHERE pending.id = ANY ($1::bigint[]);

-- name: next_ids
-- Of a table that is named as text.
SELECT nextval(pg_get_serial_sequence($1, 'id')) FROM generate_series(1, $2::integer);

-- name: add_requests
INSERT INTO holdfast.requests (org, kind, key, execution_id, sequence, expires_at, answer)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bytea[])
ON CONFLICT DO NOTHING;

-- name: set_sequence
-- Where ids go on, for the table that is named as text.
SELECT setval(pg_get_serial_sequence($1, 'id'), greatest(1, $2::bigint), $2::bigint > 0);

-- name: find_greatest_ids
SELECT (SELECT max(id) FROM holdfast.executions),
       (SELECT max(id) FROM holdfast.inbox),
       (SELECT max(id) FROM holdfast.dead_letters),
       (SELECT max(id) FROM holdfast.activities),
       (SELECT max(id) FROM holdfast.subscriptions),
       (SELECT max(id) FROM holdfast.pending),
       (SELECT max(id) FROM holdfast.publications);

-- name: move_settings
-- Pauses and definitions that are moved have a number, by which nodes hear of them.
INSERT INTO holdfast.settings AS stored (id, number)
VALUES (1, greatest(1, $1::bigint))
ON CONFLICT (id) DO UPDATE
SET number = greatest(stored.number + 1, excluded.number);

-- name: analyze
ANALYZE holdfast.executions, holdfast.events, holdfast.timers, holdfast.inbox, holdfast.dead_letters, holdfast.requests,
    holdfast.activities, holdfast.attributes, holdfast.pauses, holdfast.schedules, holdfast.tasks, holdfast.task_keys,
    holdfast.task_events, holdfast.subscriptions, holdfast.pending, holdfast.pending_fields, holdfast.publications, holdfast.starts,
    holdfast.resources, holdfast.definitions, holdfast.incidents;

-- name: empty
TRUNCATE holdfast.questions, holdfast.executions, holdfast.events, holdfast.timers, holdfast.inbox, holdfast.dead_letters, holdfast.requests,
    holdfast.activities, holdfast.attributes, holdfast.pauses, holdfast.schedules, holdfast.tasks, holdfast.task_keys,
    holdfast.task_events, holdfast.subscriptions, holdfast.pending, holdfast.pending_fields, holdfast.publications, holdfast.starts,
    holdfast.resources, holdfast.definitions, holdfast.incidents, holdfast.snapshots;
