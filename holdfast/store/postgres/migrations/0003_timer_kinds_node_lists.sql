-- What a timer is for stands in a column of its own, no longer in the sign of `attempt`. The nodes of an execution are a JSON
-- list, no longer names joined by commas; and that an activity is offered is a flag, no longer a name that no node has.
-- Processes mark of which executions they are about to take turns.

ALTER TABLE holdfast.timers ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT 'timer';
UPDATE holdfast.timers
SET kind = CASE WHEN attempt > 0 THEN 'retry' ELSE 'offer' END, attempt = abs(attempt)
WHERE attempt <> 0;

ALTER TABLE holdfast.executions RENAME COLUMN node TO nodes;
UPDATE holdfast.executions
SET nodes = to_json(string_to_array(nodes, ','))::text
WHERE nodes IS NOT NULL;

UPDATE holdfast.executions
SET details = convert_to(replace(convert_from(details, 'UTF8'), '"node":",offered"', '"offered":true'), 'UTF8')
WHERE closed_at IS NULL AND position('"node":",offered"'::bytea IN details) > 0;

-- Of which executions, at which versions, a process is about to take turns: what it leaves behind if it ends in one of them.
-- Kept in the page as long as possible: it is written with every batch.
CREATE TABLE holdfast.in_flight (
    process       text COLLATE "C" NOT NULL,
    slot          integer NOT NULL,
    execution_ids text[] COLLATE "C" NOT NULL,
    versions      bigint[] NOT NULL,
    marked_at     bigint NOT NULL,
    PRIMARY KEY (process, slot)
) WITH (fillfactor = 10, toast_tuple_target = 8160);
