-- Databases that were made before the condition of this index was written as statements ask for it have it in another form, which no
-- statement uses: each take-over and each list of what is open went through every execution.

DROP INDEX holdfast.executions_open;
CREATE INDEX executions_open ON holdfast.executions (execution_id) WHERE (closed_at IS NULL) IS TRUE;
