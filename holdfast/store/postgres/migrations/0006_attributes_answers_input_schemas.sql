-- Executions are found by their metadata, requests keep their answers, and nodes announce input schemas.

CREATE TABLE holdfast.attributes (
    org          text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    value        text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, kind, name, value, execution_id)
);

CREATE FUNCTION holdfast.read_metadata(details bytea) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    found json;
BEGIN
    found := replace(replace(convert_from(details, 'UTF8'), '\\', '\u005c'), '\u0000', '\ufffd')::json -> 'metadata';
    PERFORM 1 FROM json_each_text(found);
    RETURN found;
EXCEPTION WHEN others THEN
    RETURN '{}';
END
$$;

CREATE FUNCTION holdfast.put_metadata() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast.attributes (org, kind, name, value, execution_id)
    SELECT NEW.org, 'metadata', found.key, found.value, NEW.execution_id
    FROM json_each_text(holdfast.read_metadata(NEW.details)) AS found
    WHERE found.value IS NOT NULL AND octet_length(found.key) <= 255 AND octet_length(found.value) <= 500
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE FUNCTION holdfast.remove_metadata() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM holdfast.attributes WHERE execution_id = OLD.execution_id;
    RETURN NULL;
END
$$;

-- From here on nobody inserts an execution until the migration has ended: none is missed.
CREATE TRIGGER executions_put_metadata AFTER INSERT ON holdfast.executions
FOR EACH ROW WHEN (position('"metadata":{"'::bytea IN NEW.details) > 0) EXECUTE FUNCTION holdfast.put_metadata();
CREATE TRIGGER executions_remove_metadata AFTER DELETE ON holdfast.executions
FOR EACH ROW WHEN (position('"metadata":{"'::bytea IN OLD.details) > 0) EXECUTE FUNCTION holdfast.remove_metadata();

INSERT INTO holdfast.attributes (org, kind, name, value, execution_id)
SELECT executions.org, 'metadata', found.key, found.value, executions.execution_id
FROM holdfast.executions
CROSS JOIN LATERAL json_each_text(holdfast.read_metadata(executions.details)) AS found
WHERE position('"metadata":{"'::bytea IN executions.details) > 0
    AND found.value IS NOT NULL AND octet_length(found.key) <= 255 AND octet_length(found.value) <= 500
ON CONFLICT DO NOTHING;

CREATE INDEX attributes_by_execution ON holdfast.attributes (execution_id);

ALTER TABLE holdfast.requests ADD COLUMN answer bytea;

CREATE TABLE holdfast.input_schemas (
    digest text COLLATE "C" PRIMARY KEY,
    body   bytea NOT NULL
);
