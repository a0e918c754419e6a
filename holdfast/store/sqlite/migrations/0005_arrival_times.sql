-- When an inbox row was accepted: histories show that time, however long the row waited. 0: an earlier version put it.
PRAGMA user_version = 5;

ALTER TABLE inbox ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
