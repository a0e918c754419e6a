-- What a timer is for stands in a column of its own, no longer in the sign of `attempt`. The nodes of an execution are a JSON
-- list, no longer names joined by commas; and that an activity is offered is a flag, no longer a name that no node has.
PRAGMA user_version = 3;

ALTER TABLE timers ADD COLUMN kind         TEXT    NOT NULL DEFAULT 'timer';
UPDATE timers
SET kind = CASE WHEN attempt > 0 THEN 'retry' ELSE 'offer' END, attempt = abs(attempt)
WHERE attempt <> 0;

ALTER TABLE executions RENAME COLUMN node TO nodes;
UPDATE executions
SET nodes = '[' || replace(json_quote(nodes), ',', '","') || ']'
WHERE nodes IS NOT NULL;

UPDATE executions
SET details = CAST(replace(CAST(details AS TEXT), '"node":",offered"', '"offered":true') AS BLOB)
WHERE closed_at IS NULL AND instr(details, CAST('"node":",offered"' AS BLOB)) > 0;
