"""Whether a value comes back as it was, by the hint under which it is read.

JSON is written by what a value is, and read by what a hint says. Where the two differ, something is lost without an error:
the fields of a subclass, keys that a class does not have. For each hint one function is made that looks only where that can
happen; for most hints there is nothing to look at, and none is made.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import enum
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any, Final, TypeVar, get_args, get_origin
from uuid import UUID

import msgspec

from holdfast.core import decoders, models
from holdfast.core.models import Unfaithful
from holdfast.core.record_types import (
    RecordType,
    find_tags,
    is_path,
    is_union,
    list_choices,
    list_parts,
    read_record,
    strip,
)
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.unions import find_tag

Check = Callable[[Any], None]
"""Raises Unfaithful if a value would not come back as it was."""


class Ambiguous(Unfaithful):
    """Refused only by executions that record the behaviour `strict-arguments`: see `core.payloads.Strictness`."""


_CHECKS: Final[dict[tuple[Any, bool], Check | None]] = {}
_PARTS: Final[dict[type, tuple[tuple[str, Check], ...]]] = {}
_MANY: Final = 8
"""From how many values on it pays to look at all of them at once."""
_FIELDS: Final[dict[type, tuple[str, ...]]] = {}
_KEYS: Final = (str, int, float, bytes, dt.datetime, dt.date, dt.time, dt.timedelta, UUID, Decimal, Any, object)


def find_check(hint: Any, *, in_model: bool = False) -> Check | None:
    """The check of values that are read as `hint`; None if whatever can be written comes back. Made once per hint.

    Within a model pydantic reads the values, and tells apart what looks alike: texts and numbers are left to it.
    """
    key = (hint, in_model)
    try:
        if key in _CHECKS:
            return _CHECKS[key]
    except TypeError:  # a hint that cannot be hashed
        return _make_check(hint, in_model)
    waiting: list[Check] = []

    def check_later(value: Any) -> None:  # for a class that has itself as a field
        for check in waiting:
            check(value)

    _CHECKS[key] = check_later
    try:
        made = _make_check(hint, in_model)
    except BaseException:
        del _CHECKS[key]
        raise
    if made is not None:
        waiting.append(made)
    _CHECKS[key] = made
    return made


def check_model_fields(value: Any) -> None:
    """Check what the fields of a model hold: pydantic writes it by the hint of the field, without a word."""
    cls = type(value)
    parts = _PARTS.get(cls)
    if parts is None:
        record = read_record(cls)
        parts = _PARTS[cls] = () if record is None else _find_parts(record, in_model=True)
    for name, check in parts:
        check(getattr(value, name, None))


def _make_check(hint: Any, in_model: bool) -> Check | None:
    hint = strip(hint)
    cls = get_origin(hint) or hint
    if isinstance(hint, TypeVar):
        return find_check(Any if hint.__bound__ is None else hint.__bound__, in_model=in_model)
    if hint in (Any, object) or cls is typing.Literal:
        return None if cls is typing.Literal else check_plain
    if is_union(hint):
        return _make_union_check(list_choices(hint), in_model)
    record = read_record(hint)
    if record is not None:
        return _make_record_check(record, in_model)
    if cls in (dt.datetime, dt.time):
        return _check_zone
    if not isinstance(cls, type) or cls in _PLAIN_CHECKS:
        return (_CHECKS_IN_MODELS if in_model else _PLAIN_CHECKS).get(cls)
    if cls is tuple:
        return _make_tuple_check(get_args(hint), in_model)
    if issubclass(cls, collections.abc.Mapping):
        return _make_mapping_check(get_args(hint), in_model)
    if issubclass(cls, collections.abc.Iterable | collections.abc.Container) and not issubclass(
        cls, str | bytes | bytearray | enum.Enum
    ):
        inner = find_check(get_args(hint)[0], in_model=in_model) if get_args(hint) else check_plain
        return None if inner is None else _check_each(inner)
    return _make_path_check(cls) if is_path(cls) and not in_model else None


def check_plain(value: Any) -> None:
    """Check a value that is read as Any. It arrives as plain JSON, so only entries of a dict can be lost."""
    if type(value) in _SCALARS:
        return
    if isinstance(value, dict):
        if not _TEXT.issuperset(map(type, value)):
            _check_entries(value)
        items: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        items = value
    else:
        items = [getattr(value, name, None) for name in _list_fields(type(value))]
    if _SCALARS.issuperset(map(type, items)):
        return
    inner = [one for one in items if type(one) not in _SCALARS]
    while len(inner) >= _MANY:  # what is alike is looked at together, so that long lists cost little for each item
        kinds = set(map(type, inner))
        if kinds == {dict}:
            if not _TEXT.issuperset(map(type, chain.from_iterable(inner))):
                for one in inner:
                    _check_entries(one)
            inner = [one for one in chain.from_iterable(map(dict.values, inner)) if type(one) not in _SCALARS]
        elif kinds <= {list, tuple}:
            inner = [one for one in chain.from_iterable(inner) if type(one) not in _SCALARS]
        else:
            break
    for one in inner:
        check_plain(one)


def _check_entries(value: Mapping[Any, Any]) -> None:
    """Keys of one type are written in different ways; 1 and '1' are not."""
    if len(set(map(type, value))) < 2:
        return
    known: dict[str, Any] = {}
    for key in value:
        (text,) = msgspec.to_builtins({key: None}, str_keys=True)
        if text in known:
            raise Ambiguous(
                f"the keys {show(known[text], repr, LONGEST_SHOWN)} and {show(key, repr, LONGEST_SHOWN)} of a dict are one "
                "key in JSON, so that an entry would be lost. Pass keys of one type."
            )
        known[text] = key


def _list_fields(cls: type) -> tuple[str, ...]:
    """The fields of a dataclass or a struct. Models check their own when they are written."""
    found = _FIELDS.get(cls)
    if found is None:
        try:
            record = None if models.is_model(cls) else read_record(cls)
        except NameError:  # a hint that cannot be found, and that nothing is read by
            record = None
        found = _FIELDS[cls] = () if record is None else tuple(field.name for field in record.fields)
    return found


def _check_text(value: Any) -> None:
    """Many values are written as text. Where the hint is `str` they would stay it."""
    if (
        type(value) is not str
        and not isinstance(value, str)
        and (isinstance(value, _WRITTEN_AS_TEXT) or is_path(type(value)))
    ):
        name = type(value).__name__
        raise Unfaithful(f"a {name} would come back as a str. Pass a str, or declare it as {name}.")


def _check_texts(value: Any) -> None:
    if isinstance(value, list | tuple | set | frozenset) and not _TEXT.issuperset(map(type, value)):
        for item in value:
            _check_text(item)


def _check_text_keys(value: Mapping[Any, Any]) -> None:
    if not _TEXT.issuperset(map(type, value)):
        for key in value:
            if not isinstance(key, str):
                raise Unfaithful(f"a key that is a {type(key).__name__} would come back as a str. Pass keys of type str.")


def _check_float(value: Any) -> None:
    if type(value) is int and _is_rounded(value):
        raise Unfaithful(_ROUNDED)


def _check_float_in_model(value: Any) -> None:
    """Pydantic makes a float of what is given, but not of what is assigned later."""
    if type(value) is int and _is_rounded(value):
        raise Ambiguous(_ROUNDED)


def _check_floats(value: Any) -> None:
    if isinstance(value, list | tuple | set | frozenset) and int in set(map(type, value)):
        for item in value:
            _check_float_in_model(item)


def _is_rounded(value: int) -> bool:
    return abs(value) > _EXACT and value.bit_length() <= 1023 and float(value) != value


def _make_path_check(cls: Any) -> Check:
    """All paths are written alike, and read as those of the hint or, if it names no system, of this one."""
    read_as = type(cls("."))

    def check(value: Any) -> None:
        given = type(value)
        if given is not read_as and is_path(given) and cls(str(value)) != value:
            raise Ambiguous(
                f"a {given.__name__} would come back as a {read_as.__name__}. "
                f"Pass a {read_as.__name__}, or declare it as {given.__name__}."
            )

    return check


_TEXT: Final = frozenset([str])
_SCALARS: Final = frozenset([str, int, float, bool, type(None), bytes, dt.datetime, dt.date, dt.timedelta, Decimal, UUID])
_WRITTEN_AS_TEXT: Final = (
    bytes,
    bytearray,
    memoryview,
    dt.date,
    dt.time,
    dt.timedelta,
    Decimal,
    UUID,
    enum.Enum,
)
_ROUNDED: Final = "an int of so many digits would be rounded to a float. Pass a float, or declare it as int."
_EXACT: Final = 2**53
"""Up to here every int is a float too."""
_PLAIN_CHECKS: Final[Mapping[Any, Check]] = {str: _check_text, float: _check_float}
_CHECKS_IN_MODELS: Final[Mapping[Any, Check]] = {float: _check_float_in_model}


def _check_each(inner: Check) -> Check:
    if inner is _check_text:
        return _check_texts
    if inner is _check_float_in_model:
        return _check_floats
    if inner is check_plain:
        return check_plain

    def check(value: Any) -> None:
        if isinstance(value, list | tuple | set | frozenset):
            for item in value:
                inner(item)

    return check


def _make_tuple_check(args: tuple[Any, ...], in_model: bool) -> Check | None:
    if not args:
        return check_plain
    if len(args) == 2 and args[1] is ...:
        inner = find_check(args[0], in_model=in_model)
        return None if inner is None else _check_each(inner)
    found = [(index, find_check(one, in_model=in_model)) for index, one in enumerate(args)]
    checks = [(index, one) for index, one in found if one is not None]
    if not checks:
        return None

    def check(value: Any) -> None:
        if isinstance(value, list | tuple) and len(value) == len(args):
            for index, one in checks:
                one(value[index])

    return check


def _make_mapping_check(args: tuple[Any, ...], in_model: bool) -> Check | None:
    if len(args) != 2:
        return check_plain
    inner = find_check(args[1], in_model=in_model)
    has_text_keys = strip(args[0]) is str and not in_model
    keys = _check_text_keys if has_text_keys else _check_keys(find_check(args[0], in_model=in_model))

    def check(value: Any) -> None:
        if isinstance(value, Mapping):
            keys(value)
            if inner is not None and not (inner is check_plain and _SCALARS.issuperset(map(type, value.values()))):
                for item in value.values():
                    inner(item)

    return check


def _check_keys(inner: Check | None) -> Check:
    if inner is None or inner is check_plain:
        return _check_entries

    def check(value: Any) -> None:
        for key in value:
            inner(key)
        _check_entries(value)

    return check


def _make_union_check(choices: tuple[Any, ...], in_model: bool) -> Check | None:
    records = {record.cls: choice for choice in choices if (record := read_record(choice)) is not None}
    by_class = {cls: find_check(choice, in_model=in_model) for cls, choice in records.items()}
    plain = [one for one in choices if read_record(one) is None]
    if any(strip(one) is int for one in plain):
        plain = [one for one in plain if strip(one) is not float]
    others = list(dict.fromkeys(found for one in plain if (found := find_check(one, in_model=in_model)) is not None))
    if not by_class and not others:
        return None
    names = " or ".join(cls.__name__ for cls in by_class)
    tags = _find_own_tags(choices)

    def check(value: Any) -> None:
        cls = type(value)
        one = by_class.get(cls)
        if one is not None:
            one(value)
            if cls in tags:
                _check_tag(value, *tags[cls])
        elif by_class and cls not in by_class and _is_record(value):
            _refuse_class(value, tuple(by_class), names)
        else:
            for other in others:
                other(value)

    return check


def _find_own_tags(choices: tuple[Any, ...]) -> dict[type, tuple[str, frozenset[Any]]]:
    """The field by which each class of a union is told from the others, if it is one that code can set, and its values."""
    records = [(record, one) for one in choices if (record := read_record(one)) is not None and not record.is_array]
    key, _ = find_tag(records)
    found = {}
    for record, _ in records if key is not None else ():
        for field in record.fields:
            if field.key == key and record.tag_key != key:
                found[record.cls] = (field.name, find_tags(record)[key])
    return found


def _check_tag(value: Any, name: str, own: frozenset[Any]) -> None:
    found = getattr(value, name, None)
    if (found.value if isinstance(found, enum.Enum) else found) not in own:
        cls, known = type(value).__name__, " or ".join(sorted(map(repr, own)))
        raise Ambiguous(
            f"the field '{name}' of a {cls} is {show(found, repr, LONGEST_SHOWN)}, not {known}, by which a {cls} is known. "
            "Leave it as it is, or pass an object of the other class."
        )


def _find_parts(record: RecordType, in_model: bool) -> tuple[tuple[str, Check], ...]:
    in_model = in_model or record.kind == "model"
    found = [(field.name, find_check(field.hint, in_model=in_model)) for field in record.fields]
    return tuple((name, check) for name, check in found if check is not None)


def _make_record_check(record: RecordType, in_model: bool) -> Check:
    cls, parts, keys = record.cls, _find_parts(record, in_model), record.keys
    accepted = keys.union(field.name for field in record.fields) if record.kind == "model" else keys
    if record.kind == "model":
        for field in models.get_fields(cls).items() if models.is_pydantic(cls) else ():
            accepted = accepted.union(models.list_written_keys(field[1], field[0])[1])
    takes_more = record.takes_more or record.is_array or getattr(cls, "__pydantic_root_model__", False)
    by_key = {field.key: check for field in record.fields for name, check in parts if name == field.name}
    is_written_apart = record.kind == "model" and not in_model
    own_parts = () if is_written_apart else parts  # those of models are checked when they are written
    is_rebuilt = record.kind in ("dataclass", "struct") and (hasattr(cls, "__post_init__") or models.is_pydantic(cls))
    takes_generic = _find_origin(cls)

    def check(value: Any) -> None:
        given = type(value)
        if given is cls:
            for name, one in own_parts:
                one(getattr(value, name, None))
            if is_rebuilt:
                _check_rebuilt(value)
        elif isinstance(value, dict):
            if not takes_more and not accepted.issuperset(value):
                more = ", ".join(repr(key) for key in value if key not in accepted)
                lost = "so it would be lost. Leave it out, or add the field."
                raise Unfaithful(
                    f"{cls.__name__} has no field {more}, {lost}", f"{cls.__name__} has no field for one of its keys, {lost}"
                )
            for key, one in by_key.items():
                if key in value:
                    one(value[key])
        elif _is_record(value):
            if takes_generic is None or _find_origin(given) is not takes_generic:
                _refuse_class(value, (cls,), cls.__name__)
            if takes_generic is not cls:
                models.check_other(value, cls)

    return check


def _find_origin(cls: Any) -> Any:
    """The class of which a generic model is made: pydantic makes a class for each of its types."""
    metadata = getattr(cls, "__pydantic_generic_metadata__", None)
    if not metadata:
        return None
    return metadata["origin"] or (cls if metadata["parameters"] else None)


def _is_record(value: Any) -> bool:
    """Whether a value is written field by field, with the fields of its own class."""
    is_named_tuple = isinstance(value, tuple) and hasattr(value, "_fields")
    return (
        is_named_tuple
        or dataclasses.is_dataclass(value)
        or isinstance(value, msgspec.Struct)
        or models.is_model(type(value))
    )


def _refuse_class(value: Any, expected: tuple[type, ...], names: str) -> typing.NoReturn:
    name, parent = type(value).__name__, next((one for one in expected if isinstance(value, one)), None)
    if parent is None:
        raise Unfaithful(f"it is a {name}, not a {names}. Pass a {names}, or change the type hint.")
    mine, theirs = read_record(type(value)), read_record(parent)
    more = [] if mine is None or theirs is None else sorted(mine.keys - theirs.keys)
    lost = f", and lose {', '.join(map(repr, more))}" if more else ""
    raise Unfaithful(
        f"a {name} would come back as a {parent.__name__}{lost}. "
        f"Declare it as {name}, or as a union of the classes that may come: {parent.__name__} | {name}."
    )


def _check_rebuilt(value: Any) -> None:
    """A class with `__post_init__` or validators runs them again when it is read: only the value tells what that changes."""
    cls, data = type(value), _SORTED_ENCODER.encode(value)
    if _SORTED_ENCODER.encode(decoders.make_decoder(cls).decode(data)) != data:  # `==` may leave fields out
        whose = "validators" if models.is_pydantic(cls) else "__post_init__"
        raise Unfaithful(
            f"the {whose} of {cls.__name__} would change the value when it is read. "
            "Let it leave a value alone that is already as it should be."
        )


def encode_unknown(value: Any) -> Any:
    """What msgspec cannot write by itself, as values that it can. Raises Unfaithful for what would not come back."""
    if models.is_model(type(value)) and hasattr(value, "model_dump"):
        check_model_fields(value)
        return models.dump(value, is_checked=True)
    if inspect.isawaitable(value):
        raise Unfaithful("a value was not awaited. Write `await` before the call that gives it.")
    return encode_unchecked(value)


def encode_tolerantly(value: Any) -> Any:
    """The same, for executions that began before `Ambiguous` was refused."""
    try:
        return encode_unknown(value)
    except Ambiguous:
        return models.dump(value, is_checked=True)


def encode_unchecked(value: Any) -> Any:
    """The same, for executions that began before this was checked."""
    if models.is_model(type(value)) and hasattr(value, "model_dump"):
        return models.dump(value, is_checked=False)
    if is_path(type(value)):
        return str(value)
    raise TypeError(f"values of type {type(value).__module__}.{type(value).__qualname__} have no JSON form")


_SORTED_ENCODER: Final = msgspec.json.Encoder(enc_hook=encode_unknown, order="sorted")


def _check_zone(value: Any) -> None:
    zone = getattr(value, "tzinfo", None)
    if zone is None or zone is dt.UTC:
        return
    offset = value.utcoffset()
    if offset is not None and offset % dt.timedelta(minutes=1):
        reason = (
            "is not a whole number of minutes, which JSON's date-times cannot say. Convert it to UTC: value.astimezone(UTC)."
        )
        raise Unfaithful(f"the time zone of {value} {reason}", f"its time zone {reason}")


# --- hints that never work ---


def find_bad_part(hint: Any, seen: set[Any] | None = None) -> str:
    """What in a hint cannot come back as it was, whatever the value; empty if nothing."""
    seen = set() if seen is None else seen
    hint = strip(hint)
    if hint in seen or isinstance(hint, TypeVar) or get_origin(hint) is typing.Literal:
        return ""
    seen.add(hint)
    cls, args = get_origin(hint) or hint, get_args(hint)
    if isinstance(cls, type) and issubclass(cls, collections.abc.Mapping) and len(args) == 2:
        bad = _find_bad_key(args[0])
        if bad:
            return bad
    record = read_record(hint)
    if record is not None and record.kind == "model":
        return ""  # a matter of pydantic's
    parts = list_parts(hint) if record is None else tuple(field.hint for field in record.fields)
    return next((found for one in parts if (found := find_bad_part(one, seen))), "")


def _find_bad_key(hint: Any) -> str:
    key = strip(hint)
    is_fine = key in _KEYS or isinstance(key, TypeVar) or get_origin(key) is typing.Literal
    if is_fine or (isinstance(key, type) and issubclass(key, enum.Enum)):
        return ""
    return (
        f"{key if is_union(key) else getattr(key, '__name__', key)} as the type of a dict's keys, which JSON writes "
        "as strings, cannot be read back. Use str, int, an enum, or a list of pairs"
    )
