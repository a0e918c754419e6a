"""Pydantic models: written by alias, read as JSON, and refused where they would not come back as they were.

Pydantic is not imported: its classes are recognised by what pydantic leaves on them. Whether a model comes back is found
out once per class, from the schema that pydantic made of it. There are three answers: yes; no, for a reason that names the
field; or that only the value can tell, since functions of the user's take part. Then each value is read back when it is
written, and compared. Classes that merely have `model_dump` and `model_validate` are taken as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

_PLAIN: Final = frozenset(
    [
        "int",
        "float",
        "str",
        "bool",
        "none",
        "date",
        "time",
        "datetime",
        "timedelta",
        "decimal",
        "uuid",
        "enum",
        "literal",
        "any",
        "list",
        "set",
        "frozenset",
        "tuple",
        "nullable",
        "default",
        "model",
        "model-fields",
        "model-field",
        "definitions",
        "definition-ref",
        "tagged-union",
        "dict",
    ]
)
"""Parts of schemas that come back as they were, whatever their value."""
_CHANGING_CONFIG: Final = ("ser_json_", "val_json_", "json_encoders", "str_strip", "str_to_")
_CHANGING_STR: Final = ("strip_whitespace", "to_lower", "to_upper")


class Unfaithful(TypeError):
    """A value would not come back as it was. The message says why and ends with the remedy, as sentences."""

    def __init__(self, message: str, without_values: str = "") -> None:
        """`without_values` is the message for where no value may be shown, if the other shows any."""
        super().__init__(message)
        self.without_values = without_values or message


class Verdict(NamedTuple):
    """What is known of a class of models: why its values do not come back, else whether each has to be tried."""

    refusal: str
    is_uncertain: bool
    takes_names: bool


_VERDICTS: Final[dict[type, Verdict]] = {}


def is_model(hint: Any) -> bool:
    """Whether `hint` is a class that brings its own conversion, as pydantic models do."""
    return hasattr(hint, "model_validate")


def is_pydantic(cls: Any) -> bool:
    """Whether a class was made by pydantic: a model, or a dataclass of its."""
    return isinstance(cls, type) and hasattr(cls, "__pydantic_validator__") and hasattr(cls, "__pydantic_fields__")


def get_fields(cls: Any) -> dict[str, Any]:
    """The fields of a pydantic class, with what pydantic knows of each."""
    if not cls.__dict__.get("__pydantic_complete__", True) and hasattr(cls, "model_rebuild"):
        cls.model_rebuild(raise_errors=False)
    return dict(cls.__pydantic_fields__)


def dump(value: Any, *, is_checked: bool) -> Any:
    """A model as plain JSON values. Raises Unfaithful if it would not come back, unless that is not to be checked."""
    cls = type(value)
    verdict = _VERDICTS.get(cls)
    if verdict is None:
        if not is_pydantic(cls):
            return value.model_dump(mode="json")
        verdict = judge(cls)
    if is_checked and verdict.refusal:
        raise Unfaithful(verdict.refusal)
    is_uncertain = verdict.is_uncertain
    if is_checked and not is_uncertain:
        try:
            return _write(value, warnings="error")
        except ValueError:  # a field has got a value of another type than it declares: pydantic does not check assignments
            is_uncertain = True
    plain = _write(value, warnings="none")
    if is_checked and is_uncertain:
        _compare(value, plain)
    return plain


def _write(value: Any, warnings: str) -> Any:
    serializer = type(value).__pydantic_serializer__
    return serializer.to_python(value, mode="json", by_alias=True, round_trip=True, warnings=warnings)


def validate(cls: Any, plain: Any) -> Any:
    """The model that plain JSON values stand for, under their aliases or under the names of its fields."""
    verdict = _VERDICTS.get(cls)
    if verdict is None:
        if not is_pydantic(cls):
            return cls.model_validate(plain)
        verdict = judge(cls)
    try:
        if not verdict.takes_names:
            return cls.__pydantic_validator__.validate_json(msgspec.json.encode(plain))
        return cls.__pydantic_validator__.validate_json(msgspec.json.encode(plain), by_alias=True, by_name=True)
    except ValueError as error:
        raise ValueError(_describe_errors(error)) from error


def judge(cls: Any) -> Verdict:
    """Whether the models of a class come back as they were; found out once per class."""
    verdict = _VERDICTS.get(cls)
    if verdict is None:
        get_fields(cls)
        refusals = [found for found in _find_reasons(cls, cls.__pydantic_core_schema__, set()) if found is not None]
        uncertain = any(found is None for found in _find_reasons(cls, cls.__pydantic_core_schema__, set()))
        takes_names = "by_name" in inspect.signature(cls.model_validate_json).parameters
        verdict = _VERDICTS[cls] = Verdict(refusals[0] if refusals else "", uncertain, takes_names)
    return verdict


def list_written_keys(field: Any, name: str) -> tuple[str, list[str]]:
    """The key under which a field is written, and those under which it is read, the first that is there counts."""
    written = name if field.serialization_alias is None else field.serialization_alias
    read: list[str] = []
    for alias in getattr(field.validation_alias, "choices", [field.validation_alias]):
        path = getattr(alias, "path", [alias])
        if len(path) == 1 and isinstance(path[0], str):
            read.append(path[0])
    return written, [*read, name]


def _find_reasons(cls: Any, schema: Any, seen: set[int]) -> Iterator[str | None]:
    """Why values of a schema do not come back; None for each part of which only the value can tell."""
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from _find_reasons(cls, part, seen)
    if not isinstance(schema, dict) or id(schema) in seen:
        return
    seen.add(id(schema))
    if schema.get("type") == "model":
        cls = schema["cls"]
        yield from _judge_fields(cls)
    if _is_uncertain(schema):
        yield None
    for key, part in schema.items():
        if key not in ("metadata", "serialization", "config", "function"):
            yield from _find_reasons(
                cls, list(part.values()) if key in ("fields", "choices") and isinstance(part, dict) else part, seen
            )


def _is_uncertain(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    if kind is None:
        return False
    if kind not in _PLAIN or "serialization" in schema or schema.get("serialization_exclude_if") is not None:
        return True
    if kind == "model":
        cls, config = schema["cls"], schema.get("config") or {}
        config = {**getattr(cls, "model_config", {}), **config}
        changes = any(config.get(key) for key in config if key.startswith(_CHANGING_CONFIG))
        return bool(changes or schema.get("custom_init") or schema.get("post_init") or cls.__private_attributes__)
    if kind == "dict":
        return schema.get("keys_schema", {}).get("type", "str") not in ("str", "int", "any")
    return kind == "str" and any(schema.get(key) for key in _CHANGING_STR)


def _judge_fields(cls: Any) -> Iterator[str]:
    fields = get_fields(cls)
    keys = {name: list_written_keys(field, name) for name, field in fields.items()}
    written = [key for key, _ in keys.values()]
    for name, field in fields.items():
        where = f"field '{name}' of {cls.__name__}"
        key, read = keys[name]
        if field.exclude:
            yield f"{where} is excluded from what is written (exclude=True). Leave that out, or keep the value elsewhere."
        elif _is_secret(field.annotation) and not _has_own_serializer(cls, name, field):
            yield (
                f"{where} is a secret, which is written as asterisks. "
                "Pass a reference by which the activity finds the secret, or declare it as str."
            )
        elif next((one for one in read if one in written), None) != key or written.count(key) > 1:
            yield (
                f"{where} is written as '{key}', but read as {' or '.join(map(repr, read))}. "
                "Give it one alias for both: Field(alias=…)."
            )


def _is_secret(annotation: Any) -> bool:
    if hasattr(annotation, "get_secret_value"):
        return True
    return any(_is_secret(part) for part in getattr(annotation, "__args__", ()))


def _has_own_serializer(cls: Any, name: str, field: Any) -> bool:
    """Whether a function of the user's writes a field: then only the value can tell whether it comes back."""
    decorators = cls.__pydantic_decorators__
    if decorators.model_serializers or (cls.model_config.get("json_encoders")):
        return True
    fields = [one for serializer in decorators.field_serializers.values() for one in serializer.info.fields]
    return name in fields or "*" in fields or any(hasattr(one, "when_used") for one in field.metadata)


def check_other(value: Any, cls: Any) -> None:
    """Check a generic model of other types than the class by which it is read. Raises Unfaithful if it would be another."""
    plain = dump(value, is_checked=True)
    try:
        found = validate(cls, plain)
    except ValueError:
        return  # whoever reads it is told
    if _read_parts(found) != _read_parts(value):
        raise Unfaithful(
            f"a {type(value).__name__} would come back as a {cls.__name__} with other values. "
            f"Pass a {cls.__name__}, or declare it as {type(value).__name__}."
        )


def _read_parts(value: Any) -> tuple[Any, Any]:
    return value.__dict__, value.__pydantic_extra__


def list_values(value: Any) -> Iterator[Any]:
    """What the fields of a model hold, extra ones too, unless functions of the user's write them."""
    if is_pydantic(type(value)) and not judge(type(value)).is_uncertain:
        yield from value.__dict__.values()
        yield from (value.__pydantic_extra__ or {}).values()


def _compare(value: Any, plain: Any) -> None:
    cls = type(value)
    try:
        found = validate(cls, plain)
    except ValueError as error:
        refusal, remedy = (
            f"{cls.__name__} does not take back what it writes",
            "Make its serializers and validators fit each other.",
        )
        raise Unfaithful(f"{refusal}: {error}. {remedy}", f"{refusal}. {remedy}") from error
    if found != value or dump(found, is_checked=False) != plain:  # `==` may leave fields out
        fields = [name for name in get_fields(cls) if getattr(found, name, None) != getattr(value, name, None)]
        named = f"fields {', '.join(map(repr, fields))} of {cls.__name__}" if fields else f"{cls.__name__}"
        private = "" if fields else ", because of its private attributes or extra fields"
        raise Unfaithful(
            f"{named} would come back with other values{private}. "
            "Make its serializers and validators fit each other, or declare other types."
        )


def _describe_errors(error: Any) -> str:
    """What pydantic refused, in one line."""
    try:
        found = error.errors(include_url=False)
    except (AttributeError, TypeError):
        return str(error)
    shown = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" if one["loc"] else one["msg"] for one in found[:5]]
    return "; ".join(shown) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
