-- States and business references are rows of `attributes`, of kinds of their own.
-- Text of PostgreSQL has no NUL: the details with another mark in its place, and the pairs of an object in them that have none.
CREATE FUNCTION holdfast.mark_nul(details bytea) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT replace(
        replace(replace(convert_from(details, 'UTF8'), '\\', '\u005c'), '\u0001', '\u0001\u0002'), '\u0000', '\u0001\u0003'
    )::json
$$;

CREATE FUNCTION holdfast.read_texts(marked json) RETURNS TABLE (key text, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT replace(found.key, E'\x01\x02', E'\x01'), replace(found.value, E'\x01\x02', E'\x01')
    FROM json_each_text(CASE WHEN json_typeof(marked) = 'object' THEN marked END) AS found
    WHERE position(E'\x01\x03' IN found.key || found.value) = 0
$$;

CREATE OR REPLACE FUNCTION holdfast.read_metadata(details bytea) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    found json;
BEGIN
    SELECT json_object_agg(texts.key, texts.value) INTO found
    FROM holdfast.read_texts(holdfast.mark_nul(details) -> 'metadata') AS texts;
    RETURN coalesce(found, '{}');
EXCEPTION WHEN others THEN
    RETURN '{}';
END
$$;

-- Until here, lists found metadata that has NUL by U+FFFD in its place.
DELETE FROM holdfast.attributes
USING holdfast.executions
WHERE attributes.kind = 'metadata' AND (position(chr(65533) IN attributes.name) > 0 OR position(chr(65533) IN attributes.value) > 0)
    AND executions.execution_id = attributes.execution_id
    AND NOT EXISTS (
        SELECT 1
        FROM json_each_text(holdfast.read_metadata(executions.details)) AS found
        WHERE found.key = attributes.name AND found.value = attributes.value
    );

-- What else an execution is found by: its state as lists search it, and its business reference.
CREATE FUNCTION holdfast.put_states() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    details json;
BEGIN
    details := holdfast.mark_nul(NEW.details);
    INSERT INTO holdfast.attributes (org, kind, name, value, execution_id)
    SELECT NEW.org, 'state', found.key, found.value, NEW.execution_id
    FROM holdfast.read_texts(details -> 'searchable') AS found
    UNION ALL
    SELECT NEW.org, 'reference', '', found.value, NEW.execution_id
    FROM holdfast.read_texts(details -> 'reference') AS found
    WHERE found.key = 'key'
    UNION ALL
    SELECT NEW.org, 'part', found.key, found.value, NEW.execution_id
    FROM holdfast.read_texts(details -> 'reference' -> 'parts') AS found
    ON CONFLICT DO NOTHING;
    RETURN NULL;
EXCEPTION WHEN others THEN
    RETURN NULL;
END
$$;

CREATE TRIGGER executions_put_states AFTER INSERT ON holdfast.executions
FOR EACH ROW WHEN (position('"searchable":{"'::bytea IN NEW.details) > 0 OR position('"reference":{"'::bytea IN NEW.details) > 0)
EXECUTE FUNCTION holdfast.put_states();
CREATE TRIGGER executions_remove_states AFTER DELETE ON holdfast.executions
FOR EACH ROW WHEN (position('"searchable":{"'::bytea IN OLD.details) > 0 OR position('"reference":{"'::bytea IN OLD.details) > 0)
EXECUTE FUNCTION holdfast.remove_metadata();
