"""What `@event` makes of a class: a type of events with a name, options, and fields by which waits select them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from holdfast.core import models, payloads, type_checks
from holdfast.core.payloads import Payload, describe_hint
from holdfast.core.publications import LONGEST_NAMES, MOST_FIELDS, EventOptions, canonical_fields, canonical_value
from holdfast.core.record_types import RecordField, read_record
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.type_checks import Check
from holdfast.errors import DecodingError, InvalidArguments, InvalidDefinition

_EXACT: Final = (str, int, bool)
"""Types whose values are read as they were, if they could be written."""
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""Types of fields that need not be read back to know that they fit: a short way for most events."""

ATTRIBUTE: Final = "__holdfast_event__"
"""Where a class has its event type. Subclasses do not inherit it: each is decorated itself."""


class EventType(msgspec.Struct, frozen=True, eq=False):
    """A class of events, as it was decorated. There is one for each class: it is equal to itself alone."""

    cls: type[Any]
    name: str
    options: EventOptions


class EncodedEvent(msgspec.Struct, frozen=True):
    """An event as it is sent: with its type, its value, and the fields by which waits select it."""

    type: EventType
    value: Payload
    fields: dict[str, str]


def register_event_type(cls: Any, name: str, options: EventOptions) -> Any:
    """Make a class a type of events; the class stays as it is. Raises InvalidDefinition if it has no named fields."""
    is_record = isinstance(cls, type) and (
        dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct) or models.is_model(cls)
    )
    if not is_record:
        raise InvalidDefinition(
            f"Expected @event to decorate a dataclass, a msgspec struct or a pydantic model, but got {show(cls, repr)}. "
            "Write @event above @dataclass."
        )
    if issubclass(cls, msgspec.Struct) and cls.__struct_config__.array_like:
        raise InvalidDefinition(
            f"Expected event '{name}' to be written as a JSON object, but {cls.__name__} is array_like. Leave that out."
        )
    if ATTRIBUTE in vars(cls):
        raise InvalidDefinition(
            f"Expected @event to decorate {cls.__name__} once, but it is decorated already. Use it as it is."
        )
    setattr(cls, ATTRIBUTE, EventType(cls, name, options))
    return cls


def find_event_type(cls: Any) -> EventType:
    """The event type of a class. Raises InvalidArguments if that is not decorated with @event."""
    found = vars(cls).get(ATTRIBUTE) if isinstance(cls, type) else None
    if not isinstance(found, EventType):
        shown = cls.__name__ if isinstance(cls, type) else show(cls, repr, LONGEST_SHOWN)
        remedy = "Pass its class." if not isinstance(cls, type) and is_event(cls) else "Write @event above the class."
        raise InvalidArguments(f"Expected a class decorated with @event, but got {shown}. {remedy}")
    return found


def is_event(value: object) -> bool:
    """Whether a value is an instance of a class decorated with @event."""
    return isinstance(vars(type(value)).get(ATTRIBUTE), EventType)


class Encode(Protocol):
    """Encodes a value as a payload, with the check of the hint by which it will be read."""

    def __call__(self, value: Any, what: str, /, *, check: Check | None) -> Payload: ...


def encode_event(value: Any, encode: Encode) -> EncodedEvent:
    """An event as it is sent. Raises InvalidArguments if its class is not decorated or its values do not fit the hints.

    What nobody could read must not be sent: it would be kept, and whoever waits for it would wait on. Raises what `encode`
    raises, too.
    """
    if not is_event(value):
        shown = f"the class {value.__name__}" if isinstance(value, type) else f"{type(value).__name__}"
        remedy = "Pass an instance of it." if isinstance(value, type) else "Write @event above its class."
        raise InvalidArguments(f"Expected an instance of a class decorated with @event, but got {shown}. {remedy}")
    found = find_event_type(type(value))
    what = f"event '{found.name}'"
    try:
        check, plain = _read_check(found)
    except NameError as error:
        raise _make_unfound(found, error) from error
    payload = encode(value, what, check=check)
    if plain is None or not all(type(getattr(value, name, None)) is hint for name, hint in plain):
        try:
            payloads.decode(payload, found.cls, what)
        except DecodingError as error:
            raise InvalidArguments(error.message) from error
    return EncodedEvent(found, payload, canonical_fields(bytes(payload.data)))


@lru_cache(maxsize=256)
def _read_check(event_type: EventType) -> tuple[Check | None, tuple[tuple[str, Any], ...] | None]:
    """What an event is checked by when it is written, and its fields with their hints if all of these are plain.

    Raises NameError for hints that cannot be found.
    """
    cls = event_type.cls
    check = type_checks.find_check(cls)
    record = None if models.is_model(cls) or hasattr(cls, "__post_init__") else read_record(cls)
    if record is None or not all(field.hint in _PLAIN for field in record.fields):
        return check, None
    return check, tuple((field.name, field.hint) for field in record.fields)


def _make_unfound(event_type: EventType, error: NameError) -> InvalidArguments:
    return InvalidArguments(
        f"Expected the type hints of event '{event_type.name}' to be found, but {error}. "
        "Define their types in the module of the class."
    )


def make_where(event_type: EventType, where: Mapping[str, Any] | None) -> dict[str, str]:
    """The fields that a wait selects events by, by their keys in JSON, sorted, as canonical text.

    Raises InvalidArguments for a field that the class does not have, and for a value that the field cannot have.
    """
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise InvalidArguments(
            f"Expected where=… to be a dict of fields of event '{event_type.name}', but it is "
            f"{show(where, repr, LONGEST_SHOWN)}. Write for instance where={{'order': 7}}."
        )
    try:
        fields, steady = _read_fields(event_type)
    except NameError as error:
        raise _make_unfound(event_type, error) from error
    found = {}
    for name, value in where.items():
        field = fields.get(name)
        if field is None:
            known = ", ".join(map(repr, fields)) or "none"
            raise InvalidArguments(
                f"Expected where=… to name fields of event '{event_type.name}', but {name!r} is none of them. "
                f"It has: {known}."
            )
        if field.key not in steady:
            raise InvalidArguments(
                f"Expected field {name!r} of event '{event_type.name}' to be written always, but {event_type.cls.__name__} "
                "leaves out defaults. Declare the class without omit_defaults, or give the field no default."
            )
        found[field.key] = _make_text(event_type, field, value)
    size = sum(len(name.encode()) for name in found)
    if size > LONGEST_NAMES:
        raise InvalidArguments(
            f"Expected the names of the fields in where=… to have at most {LONGEST_NAMES} bytes together, but they have "
            f"{size}. Select by fewer fields."
        )
    return dict(sorted(found.items()))


@lru_cache(maxsize=256)
def _read_fields(event_type: EventType) -> tuple[Mapping[str, RecordField], frozenset[str]]:
    """The fields of an event's class by name, as far as waits select by them, and the keys that are always written.

    Raises NameError for hints that cannot be found; a class whose hints were found once keeps them.
    """
    record = read_record(event_type.cls)
    if record is None:
        return {}, frozenset()
    return {field.name: field for field in record.fields[:MOST_FIELDS]}, record.steady_keys


def _make_text(event_type: EventType, field: RecordField, value: Any) -> str:
    """The value of a field as events have it: as it is written after it was read by the hint of the field."""
    what = f"the value of field '{field.name}' of event '{event_type.name}'"
    text = canonical_value(value, what)  # lists and objects are refused as such
    if field.hint in _EXACT and type(value) is field.hint:
        return text
    try:
        read = payloads.decode(payloads.encode(value, what), field.hint, what)
    except DecodingError as error:
        raise InvalidArguments(
            f"Expected {what} in where=… to be {describe_hint(field.hint)}, but it is {show(value, repr, LONGEST_SHOWN)}. "
            "No event can have it: pass a value of that type."
        ) from error
    return canonical_value(read, what)
