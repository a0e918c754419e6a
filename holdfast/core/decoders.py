"""Type hints as decoders of JSON: msgspec's own where it knows the types, ours for the rest.

Theory of operation
-------------------
msgspec decodes what it knows in one pass, and hands every other class to a hook, with the plain value. So a hint is first
rewritten: each part that msgspec does not know, or does not take, is replaced by a class made for it, which has a function
that reads a plain value (`_Stand`). Those parts are paths, unions of classes (see `unions`), dataclasses of pydantic, and
every class with a field that has such a part. Hints without any such part, which is nearly all, stay as they are, and cost
what msgspec costs.
"""

from __future__ import annotations

import collections.abc
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

import msgspec

from holdfast.core import models, unions
from holdfast.core.record_types import RecordType, is_path, is_union, list_choices, list_parts, read_record, strip

_LISTS: Final = (collections.abc.Iterable, collections.abc.Container, collections.abc.Reversible)
"""Abstract collections that msgspec does not know; they come back as lists."""
_BOUNDS: Final = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")


class _Stand(type):
    """The class of the classes that stand for parts of hints: msgspec takes whatever they read as their instance."""

    read: Callable[[Any], Any]
    record: RecordType | None
    """The class with named fields that it stands for, if it is one."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


def _make_stand(name: str, read: Callable[[Any], Any], record: RecordType | None = None) -> Any:
    stand = _Stand(name, (), {})
    stand.read = read
    stand.record = record
    return stand


_DECODERS: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}
_STANDS: Final[dict[Any, Any]] = {}
_KNOWN: Final[set[Any]] = {Any}
"""Hints by which values can be read, as far as that was found out: see `signatures.check_hint`."""


def make_decoder(hint: Any) -> msgspec.json.Decoder[Any]:
    """A decoder for values of one hint; made once, since making one costs more than using it."""
    try:
        decoder = _DECODERS.get(hint)
    except TypeError:  # an unhashable hint, such as Annotated[int, []]
        return msgspec.json.Decoder(rewrite(hint), dec_hook=_decode_unknown)
    if decoder is None:
        decoder = _DECODERS[hint] = msgspec.json.Decoder(rewrite(hint), dec_hook=_decode_unknown)
    return decoder


def is_known(hint: Any) -> bool:
    """Whether a hint is known to be one by which values can be read."""
    try:
        return hint in _KNOWN
    except TypeError:  # an unhashable hint
        return False


def note_known(hint: Any) -> None:
    """Remember that values can be read by a hint."""
    try:
        _KNOWN.add(hint)
    except TypeError:
        pass  # it is looked at each time


def read_as(hint: Any, value: Any) -> Any:
    """A plain JSON value as `hint`. Raises ValueError or TypeError if it does not fit."""
    return make_decoder(hint).decode(msgspec.json.encode(value))


def _decode_unknown(hint: Any, value: Any) -> Any:
    if type(hint) is _Stand:
        return hint.read(value)
    if models.is_model(hint):
        return models.validate(hint, value)
    if isinstance(value, hint if isinstance(hint, type) else object):
        return value
    raise TypeError(f"JSON cannot become {hint!r}")


def find_stand_record(cls: Any) -> RecordType | None:
    """The class with named fields that a class of a rewritten hint stands for, if it does for one."""
    return cls.record if type(cls) is _Stand else None


# --- rewriting hints ---


def rewrite(hint: Any) -> Any:
    """A hint that msgspec can decode, with stands for what it cannot. Raises TypeError where nobody can."""
    if get_origin(hint) is Annotated:
        return _rewrite_annotated(hint)
    bare = strip(hint)
    if bare is not hint:
        return _rewrite_alias(hint, bare)
    if is_union(hint):
        return _rewrite_union(hint)
    if hint is object or isinstance(hint, TypeVar):
        bound = getattr(hint, "__bound__", None)
        return Any if bound is None else rewrite(bound)
    cls = get_origin(hint) or hint
    if cls in _LISTS:
        return types.GenericAlias(list, (rewrite((*get_args(hint), Any)[0]),))
    if is_path(cls):
        return _find_stand(hint, lambda: _make_stand(cls.__name__, lambda value: cls(_expect_text(value))))
    record = read_record(hint)
    if record is not None:
        is_ours = record.kind != "model" and _reaches_ours(hint, set())
        return _find_stand(hint, lambda: _make_record(hint, record)) if is_ours else hint
    return _rewrite_arguments(hint, cls)


def _rewrite_arguments(hint: Any, cls: Any) -> Any:
    args = get_args(hint)
    if not args or cls is typing.Literal or not isinstance(cls, type) or cls is collections.abc.Callable:
        return hint
    rewritten = tuple(one if one is ... else rewrite(one) for one in args)
    return hint if rewritten == args else types.GenericAlias(cls, rewritten)


def _rewrite_alias(hint: Any, bare: Any) -> Any:
    """The type that a name stands for. A name that is used in its own definition is looked up when it is read."""
    if hint in _STANDS:
        return _STANDS[hint]
    _STANDS[hint] = _make_stand(str(hint), lambda value: read_as(bare, value))
    try:
        return rewrite(bare)
    finally:
        del _STANDS[hint]


def _rewrite_annotated(hint: Any) -> Any:
    inner, *notes = get_args(hint)
    if any(callable(getattr(note, "discriminator", None)) for note in notes) and "pydantic" in sys.modules:
        adapter = sys.modules["pydantic"].TypeAdapter(hint)
        return _make_stand("union", lambda value: adapter.validate_json(msgspec.json.encode(value)))
    rewritten = rewrite(inner)
    if type(rewritten) is _Stand or (isinstance(rewritten, type) and models.is_model(rewritten)):
        return rewritten
    bounds = _find_bounds(notes)
    kept = [note for note in notes if isinstance(note, msgspec.Meta)]
    for note in [*kept, *([msgspec.Meta(**bounds)] if bounds else [])]:
        rewritten = Annotated.__class_getitem__((rewritten, note))  # type: ignore[attr-defined]  # made of values
    return rewritten


def _find_bounds(notes: list[Any]) -> dict[str, Any]:
    """The bounds that notes in the way of annotated_types and pydantic set: msgspec knows only its own."""
    found: dict[str, Any] = {}
    for note in notes:
        if isinstance(note, msgspec.Meta | type | str):
            continue
        for part in (note, *(getattr(note, "metadata", None) or ())):
            found.update({name: getattr(part, name) for name in _BOUNDS if getattr(part, name, None) is not None})
    return found


def _rewrite_union(hint: Any) -> Any:
    choices = list_choices(hint)
    rewritten: Any = Union[tuple(map(rewrite, choices))]  # noqa: UP007 - made of a list
    if unions.takes(rewritten):
        return rewritten
    choice = unions.Choice(hint, read_as)
    others = choice.get_others()
    if others is not None and others != hint:
        rewrite(others)
    if others == hint or (others is not None and not unions.takes(rewrite(others))):
        raise unions.IndistinctUnion(f"the types of {hint} cannot be told apart in JSON. {unions.TAG_REMEDY}")
    if any((get_origin(strip(one)) or strip(one)) in _DICTS for one in choices):
        raise unions.IndistinctUnion(f"a dict of {hint} may look like one of its classes. {unions.TAG_REMEDY}")
    return _find_stand(hint, lambda: _make_stand("union", choice.read))


_DICTS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def _find_stand(hint: Any, make: Callable[[], Any]) -> Any:
    stand = _STANDS.get(hint)
    if stand is None:
        stand = _STANDS[hint] = make()
    return stand


def _reaches_ours(hint: Any, seen: set[Any]) -> bool:
    """Whether a hint has a part, at any depth, that msgspec does not decode by itself."""
    hint = strip(hint)
    cls = get_origin(hint) or hint
    if hint in seen or isinstance(hint, TypeVar):
        return False
    seen.add(hint)
    if is_union(hint):
        return not unions.takes(hint) or any(_reaches_ours(one, seen) for one in get_args(hint))
    record = read_record(hint)
    if record is not None:
        is_special = record.kind != "model" and models.is_pydantic(record.cls)
        parts = () if record.kind == "model" else tuple(field.hint for field in record.fields)
        return is_special or any(_reaches_ours(one, seen) for one in parts)
    if cls in _LISTS or (is_path(cls)):
        return True
    return any(_reaches_ours(one, seen) for one in list_parts(hint))


# --- classes with fields that msgspec cannot read ---


def _make_record(hint: Any, record: RecordType) -> Any:
    return _make_stand(record.cls.__name__, lambda value: _read_fields(record, value), record)


def _read_fields(record: RecordType, value: Any) -> Any:
    cls = record.cls
    if record.is_array:
        if not isinstance(value, list) or len(value) > len(record.fields):
            raise ValueError(f"expected an array for {cls.__name__}, got {value!r:.80}")
        value = {field.key: item for field, item in zip(record.fields, value, strict=False)}
    elif not isinstance(value, dict):
        raise ValueError(f"expected `object`, got `{type(value).__name__}`")
    if record.tag_key is not None and value.get(record.tag_key, record.tag) != record.tag:
        raise ValueError(f"expected `{record.tag_key}` to be {record.tag!r}, got {value[record.tag_key]!r}")
    found = {field.name: _read_field(field, value[field.key]) for field in record.fields if field.key in value}
    missing = [field.key for field in record.fields if field.is_required and field.key not in value]
    if missing:
        raise ValueError(f"object missing required field `{missing[0]}`")
    return _build(record, found)


def _read_field(field: Any, value: Any) -> Any:
    try:
        return read_as(field.hint, value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{error} (in field `{field.key}`)") from error


def _build(record: RecordType, found: dict[str, Any]) -> Any:
    cls = record.cls
    if record.kind == "typed_dict":
        return found
    if models.is_pydantic(cls):
        return cls.__pydantic_validator__.validate_python(found, by_alias=True, by_name=True)
    late = {}
    if record.kind == "dataclass":
        declared = cls.__dataclass_fields__
        late = {name: found.pop(name) for name in list(found) if not declared[name].init}
    made = cls(**found)
    for name, value in late.items():
        object.__setattr__(made, name, value)
    return made


def _expect_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected `str`, got `{type(value).__name__}`")
    return value


# --- what cannot be decoded at all ---


def find_strangers(hint: Any) -> Iterator[Any]:
    """The classes inside a type that nobody can decode. Raises TypeError or NameError for hints that cannot be read."""
    for part in _list_parts(hint, {}):
        yield from _find_strangers(msgspec.inspect.type_info(rewrite(part)), set())


def _list_parts(hint: Any, seen: dict[Any, None]) -> Iterator[Any]:
    """A hint, and those of the fields of every class that is read here."""
    yield hint
    stack = [hint]
    while stack:
        one = strip(stack.pop())
        if one in seen or isinstance(one, TypeVar):
            continue
        seen[one] = None
        record = read_record(one)
        if record is None:
            stack.extend(list_parts(one))
        elif record.kind != "model":
            for field in record.fields:
                yield field.hint
                stack.append(field.hint)


def _find_strangers(info: Any, seen: set[int]) -> Iterator[Any]:
    if id(info) in seen:
        return
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType):
        if type(info.cls) is not _Stand and not models.is_model(info.cls):
            yield info.cls
    elif isinstance(info, msgspec.inspect.Type | msgspec.inspect.Field):
        for name in info.__struct_fields__:
            value = getattr(info, name)
            for part in value if isinstance(value, tuple) else (value,):
                yield from _find_strangers(part, seen)
