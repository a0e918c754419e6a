-- When an inbox row was accepted: histories show that time, however long the row waited. 0: a node of an earlier version put it.

ALTER TABLE holdfast.inbox ADD COLUMN at bigint NOT NULL DEFAULT 0;
