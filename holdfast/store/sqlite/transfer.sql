-- The statements by which everything is taken from a database, or put into one. Pages begin with where the next one goes on.

-- === marks ==============================================================================================================

-- name: read_marks
SELECT name, value FROM marks;

-- name: read_mark
SELECT value FROM marks WHERE name = ?;

-- name: put_mark
INSERT OR REPLACE INTO marks (name, value) VALUES (?, ?);

-- name: remove_mark
DELETE FROM marks WHERE name = ?;

-- === reading ============================================================================================================

-- name: begin_reading
BEGIN

-- name: count_rows
SELECT (SELECT count(*) FROM executions),
       (SELECT count(*) FROM events),
       (SELECT count(*) FROM timers),
       (SELECT count(*) FROM inbox),
       (SELECT count(*) FROM dead_letters),
       (SELECT count(*) FROM requests),
       (SELECT count(*) FROM activities),
       (SELECT count(*) FROM pauses),
       (SELECT count(*) FROM schedules),
       (SELECT count(*) FROM tasks),
       (SELECT count(*) FROM task_events),
       (SELECT count(*) FROM subscriptions),
       (SELECT count(*) FROM pending),
       (SELECT count(*) FROM publications),
       (SELECT count(*) FROM starts WHERE node = ''),
       (SELECT count(*) FROM resources),
       (SELECT count(*) FROM definitions),
       (SELECT count(*) FROM incidents);

-- name: page_executions
SELECT id, org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions
WHERE id > ?
ORDER BY id
LIMIT ?;

-- name: page_histories
-- As they were written, so that each history comes in its own order.
SELECT events.id, executions.execution_id, events.first, events.count, events.at, events.schema, events.body
FROM events
CROSS JOIN executions ON executions.id = events.execution
WHERE events.id > ?
ORDER BY events.id
LIMIT ?;

-- name: page_timers
SELECT execution_id, number, org, execution_id, number, due, kind, attempt, route
FROM timers
WHERE (execution_id, number) > (?, ?)
ORDER BY execution_id, number
LIMIT ?;

-- name: page_inbox
SELECT id, org, execution_id, workflow_id, body, id, attempts, route, at
FROM inbox
WHERE id > ?
ORDER BY id
LIMIT ?;

-- name: page_dead_letters
SELECT id, org, execution_id, workflow_id, body, reason, node, at, attempts, id
FROM dead_letters
WHERE id > ?
ORDER BY id
LIMIT ?;

-- name: page_requests
SELECT org, kind, key, org, kind, key, execution_id, sequence, expires_at, answer
FROM requests
WHERE (org, kind, key) > (?, ?, ?)
ORDER BY org, kind, key
LIMIT ?;

-- name: page_activities
SELECT id, org, execution_id, number, attempt, route, body, node
FROM activities
WHERE id > ?
ORDER BY id
LIMIT ?;

-- name: page_pauses
SELECT org, kind, name, org, kind, name, at, by, reason, ended_at
FROM pauses
WHERE (org, kind, name) > (?, ?, ?)
ORDER BY org, kind, name
LIMIT ?;

-- name: page_schedules
SELECT org, schedule_id, org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details
FROM schedules
WHERE (org, schedule_id) > (?, ?)
ORDER BY org, schedule_id
LIMIT ?;

-- name: page_tasks
SELECT task_id, org, task_id, execution_id, number, workflow, workflow_id, name, queue, state, version, assignee, claimer, users,
       groups, roles, priority, due, follow_up, business_key, created_at, updated_at, ended_at, body
FROM tasks
WHERE task_id > ?
ORDER BY task_id
LIMIT ?;

-- name: page_task_events
SELECT task_id, sequence, task_id, sequence, kind, at, actor, groups, body
FROM task_events
WHERE (task_id, sequence) > (?, ?)
ORDER BY task_id, sequence
LIMIT ?;

-- name: page_subscriptions
SELECT id, org, kind, name, execution_id, number, key, conditions, standing, since, created_at
FROM subscriptions
WHERE id > ?
ORDER BY id
LIMIT ?;

-- name: page_pending
SELECT id, org, kind, name, key, body, item, sent_at, expires_at, target, fields, start, place, id
FROM pending
WHERE id > ?
ORDER BY id
LIMIT ?;

-- name: page_publications
SELECT id, org, body, fields, origin, number, is_returned, subscribers, id
FROM publications
WHERE id > ?
ORDER BY id
LIMIT ?;

-- name: page_starts
-- Those of deployments: the others are of nodes, which say anew what they offer.
SELECT kind, name, org, workflow, queue, version, kind, name, workflow, queue, route, version, org, node
FROM starts
WHERE (kind, name, org, workflow, queue, version) > (?, ?, ?, ?, ?, ?) AND node = ''
ORDER BY kind, name, org, workflow, queue, version
LIMIT ?;

-- name: page_resources
SELECT org, digest, org, digest, name, kind, data
FROM resources
WHERE (org, digest) > (?, ?)
ORDER BY org, digest
LIMIT ?;

-- name: page_definitions
SELECT org, kind, definition_id, version, org, kind, definition_id, version, digest, deployment, deployed_at, state, name,
       version_tag, updated_at, changed, details
FROM definitions
WHERE (org, kind, definition_id, version) > (?, ?, ?, ?)
ORDER BY org, kind, definition_id, version
LIMIT ?;

-- name: page_incidents
SELECT execution_id, number, org, execution_id, number, workflow, workflow_id, element, element_name, kind, message, at
FROM incidents
WHERE (execution_id, number) > (?, ?)
ORDER BY execution_id, number
LIMIT ?;

-- === reading one execution ==============================================================================================

-- name: copy_executions
SELECT org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
       created_at, updated_at, closed_at, details, route
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?))
ORDER BY id;

-- name: copy_timers
SELECT org, execution_id, number, due, kind, attempt, route
FROM timers
WHERE execution_id = ?
ORDER BY number;

-- name: copy_inbox
-- By execution id; or, of an open execution, by workflow id.
SELECT org, execution_id, workflow_id, body, id, attempts, route, at
FROM inbox
WHERE execution_id = :execution_id AND org = :org
UNION ALL
SELECT org, execution_id, workflow_id, body, id, attempts, route, at
FROM inbox
WHERE :is_open AND execution_id = '' AND workflow_id = :workflow_id AND org = :org
ORDER BY id;

-- name: copy_activities
SELECT org, execution_id, number, attempt, route, body, node
FROM activities
WHERE execution_id = ?
ORDER BY id;

-- name: copy_requests
-- Those that an execution answered. With an open one also those that runs before it answered, since repeated calls would reach
-- it: of calls that name an execution, by its ids, whether or not the run is still there; and the keys of the starts of runs.
SELECT org, kind, key, execution_id, sequence, expires_at, answer
FROM requests
WHERE execution_id IN (SELECT value FROM json_each(:execution_ids))
UNION ALL
SELECT requests.org, requests.kind, requests.key, executions.execution_id, requests.sequence, requests.expires_at, requests.answer
FROM json_each(:execution_ids) AS asked
CROSS JOIN executions ON executions.execution_id = asked.value AND executions.closed_at IS NULL
CROSS JOIN json_each(json_array(executions.workflow_id, executions.execution_id)) AS named
CROSS JOIN json_each(:kinds) AS addressed
CROSS JOIN requests
    ON requests.org = executions.org
    AND requests.kind = addressed.value
    AND requests.key > named.value || char(10)
    AND requests.key < named.value || char(11)
WHERE requests.execution_id <> executions.execution_id
    AND (named.key = 0 OR executions.workflow_id <> executions.execution_id)
UNION ALL
SELECT requests.org, requests.kind, requests.key, executions.execution_id, requests.sequence, requests.expires_at, requests.answer
FROM json_each(:execution_ids) AS asked
CROSS JOIN executions ON executions.execution_id = asked.value AND executions.closed_at IS NULL
CROSS JOIN executions AS earlier
    ON earlier.org = executions.org AND earlier.workflow_id = executions.workflow_id AND earlier.id < executions.id
CROSS JOIN requests ON requests.execution_id = earlier.execution_id
WHERE requests.kind IN (SELECT value FROM json_each(:starts))
ORDER BY 1, 2, 3;

-- name: copy_tasks
SELECT org, task_id, execution_id, number, workflow, workflow_id, name, queue, state, version, assignee, claimer, users,
       groups, roles, priority, due, follow_up, business_key, created_at, updated_at, ended_at, body
FROM tasks
WHERE execution_id = ?
ORDER BY task_id;

-- name: copy_task_events
SELECT task_events.task_id, sequence, kind, at, actor, task_events.groups, task_events.body
FROM tasks
INNER JOIN task_events ON task_events.task_id = tasks.task_id
WHERE tasks.execution_id = ?
ORDER BY tasks.task_id, sequence;

-- name: copy_subscriptions
SELECT org, kind, name, execution_id, number, key, conditions, standing, since, created_at
FROM subscriptions
WHERE execution_id = ?
ORDER BY id;

-- name: copy_incidents
SELECT org, execution_id, number, workflow, workflow_id, element, element_name, kind, message, at
FROM incidents
WHERE execution_id = ?
ORDER BY number;

-- name: copy_pending
SELECT org, kind, name, key, body, item, sent_at, expires_at, target, fields, start, place, id
FROM pending INDEXED BY pending_by_target
WHERE target = ? AND target <> ''
ORDER BY id;

-- name: copy_publications
-- No index leads to them: there are never many.
SELECT org, body, fields, origin, number, is_returned, subscribers, id
FROM publications
WHERE origin = ? AND subscribers IS NULL AND NOT is_returned
ORDER BY id;

-- name: copy_spreads
-- What has yet to reach subscribers.
SELECT org, body, fields, origin, number, is_returned, subscribers, id
FROM publications
WHERE subscribers IS NOT NULL
ORDER BY id;

-- === writing ============================================================================================================

-- name: move_executions
INSERT INTO executions (
    org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, sequence, nodes, parent_id,
    created_at, updated_at, closed_at, details, route, last_turn, id
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?);

-- name: find_ends
-- Where histories end.
SELECT execution_id, id, last_turn
FROM executions
WHERE execution_id IN (SELECT value FROM json_each(?));

-- name: move_histories
INSERT INTO events (id, execution, previous, first, count, at, schema, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: set_ends
UPDATE executions SET last_turn = ? WHERE id = ?;

-- name: move_timers
INSERT INTO timers (org, execution_id, number, due, kind, attempt, route)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: move_inbox
INSERT INTO inbox (org, execution_id, workflow_id, body, id, attempts, route, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_dead_letters
INSERT INTO dead_letters (org, execution_id, workflow_id, body, reason, node, at, attempts, id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_requests
INSERT INTO requests (org, kind, key, execution_id, sequence, expires_at, answer)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: move_activities
INSERT INTO activities (org, execution_id, number, attempt, route, body, node)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: move_pauses
INSERT INTO pauses (org, kind, name, at, by, reason, ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: move_schedules
INSERT INTO schedules (org, schedule_id, owner, state, due, is_waiting, route, version, created_at, updated_at, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_tasks
INSERT INTO tasks (
       org, task_id, execution_id, number, workflow, workflow_id, name, queue, state, version, assignee, claimer, users,
       groups, roles, priority, due, follow_up, business_key, created_at, updated_at, ended_at, body
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_task_events
INSERT INTO task_events (task_id, sequence, kind, at, actor, groups, body)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: move_subscriptions
INSERT INTO subscriptions (org, kind, name, execution_id, number, key, conditions, standing, since, created_at, fields, lookup)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_pending
INSERT INTO pending (
    org, kind, name, key, body, item, sent_at, expires_at, target, fields, start, place, lookup, start_id, mode, id
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
RETURNING id;

-- name: move_publications
INSERT INTO publications (org, body, fields, origin, number, is_returned, subscribers, id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_starts
INSERT INTO starts (kind, name, workflow, queue, route, version, org, node)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_resources
INSERT INTO resources (org, digest, name, kind, data)
VALUES (?, ?, ?, ?, ?);

-- name: move_definitions
INSERT INTO definitions (
    org, kind, definition_id, version, digest, deployment, deployed_at, state, name, version_tag, updated_at, changed, details
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_incidents
INSERT INTO incidents (org, execution_id, number, workflow, workflow_id, element, element_name, kind, message, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: has_execution
SELECT EXISTS (SELECT 1 FROM executions WHERE execution_id = ?);

-- name: has_open
SELECT EXISTS (SELECT 1 FROM executions WHERE org = ? AND workflow_id = ? AND closed_at IS NULL);

-- name: empty
DELETE FROM questions;
DELETE FROM executions;
DELETE FROM attributes;
DELETE FROM events;
DELETE FROM timers;
DELETE FROM inbox;
DELETE FROM dead_letters;
DELETE FROM requests;
DELETE FROM activities;
DELETE FROM pauses;
DELETE FROM schedules;
DELETE FROM tasks;
DELETE FROM task_keys;
DELETE FROM task_events;
DELETE FROM subscriptions;
DELETE FROM pending;
DELETE FROM pending_fields;
DELETE FROM publications;
DELETE FROM starts;
DELETE FROM resources;
DELETE FROM definitions;
DELETE FROM incidents;
DELETE FROM snapshots;
