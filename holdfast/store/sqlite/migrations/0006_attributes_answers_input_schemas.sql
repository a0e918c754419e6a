-- Executions are found by their metadata, requests keep their answers, and nodes announce input schemas.
PRAGMA user_version = 6;

CREATE TABLE attributes (
    org          TEXT NOT NULL,
    kind         TEXT NOT NULL,
    name         TEXT NOT NULL,
    value        TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    PRIMARY KEY (org, kind, name, value, execution_id)
) STRICT, WITHOUT ROWID;

-- What cannot be read, or is too long for an index, is left out, as it is when an execution begins.
INSERT OR IGNORE INTO attributes (org, kind, name, value, execution_id)
SELECT executions.org, 'metadata', found.key, found.value, executions.execution_id
FROM executions
CROSS JOIN json_each(
    CASE WHEN json_valid(CAST(details AS TEXT)) THEN CAST(details AS TEXT) ELSE '{}' END, '$.metadata'
) AS found
WHERE instr(executions.details, CAST('"metadata":{"' AS BLOB)) > 0
    AND found.type = 'text'
    AND length(CAST(found.key AS BLOB)) <= 255
    AND length(CAST(found.value AS BLOB)) <= 500
    AND instr(found.key || found.value, char(0)) = 0;

CREATE INDEX attributes_by_execution ON attributes (execution_id);

ALTER TABLE requests ADD COLUMN answer BLOB;

CREATE TABLE input_schemas (
    digest TEXT PRIMARY KEY,
    body   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
