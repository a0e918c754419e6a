-- States and business references are rows of `attributes`, of kinds of their own: the table is there already, and so far no execution has any.
PRAGMA user_version = 10;

-- SQLite's functions for JSON end a text at its first NUL: what migration 6 so made of metadata with one is in no details, and goes.
DELETE FROM attributes
WHERE kind = 'metadata'
    AND EXISTS (
        SELECT 1
        FROM executions
        WHERE executions.execution_id = attributes.execution_id
            AND instr(executions.details, CAST('\u0000' AS BLOB)) > 0
            AND instr(
                executions.details,
                CAST(json_quote(attributes.name) || ':' || json_quote(attributes.value) AS BLOB)
            ) = 0
    );
