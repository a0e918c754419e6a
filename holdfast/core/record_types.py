"""Classes with named fields, whatever made them: dataclasses, msgspec structs, typed dicts, named tuples, models."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from typing import Annotated, Any, Final, Literal, NewType, TypeVar, Union, get_args, get_origin

import msgspec

from holdfast.core import models


class RecordField(msgspec.Struct, frozen=True):
    """A field: its name in Python, its key in JSON, its hint, and whether it has to be there."""

    name: str
    key: str
    hint: Any
    is_required: bool


class RecordType(msgspec.Struct, frozen=True):
    """A class with named fields, as JSON shows it."""

    cls: Any
    kind: Literal["dataclass", "struct", "typed_dict", "named_tuple", "model"]
    fields: tuple[RecordField, ...]
    tag_key: str | None = None
    tag: str | int | None = None
    is_array: bool = False
    omits_defaults: bool = False
    takes_more: bool = False

    @property
    def keys(self) -> frozenset[str]:
        """Every key that may be written."""
        tag = () if self.tag_key is None else (self.tag_key,)
        return frozenset([field.key for field in self.fields]).union(tag)

    @property
    def required_keys(self) -> frozenset[str]:
        """The keys that have to be there when it is read."""
        return frozenset(field.key for field in self.fields if field.is_required)

    @property
    def steady_keys(self) -> frozenset[str]:
        """The keys that are always written."""
        if self.kind == "typed_dict" or self.omits_defaults:
            return self.required_keys.union(() if self.tag_key is None else (self.tag_key,))
        return self.keys


def strip(hint: Any) -> Any:
    """A hint without what is only written around it: Annotated, NewType, Required, names of types."""
    while True:
        origin = get_origin(hint)
        if origin is Annotated or origin in _WRAPPERS:
            hint = get_args(hint)[0]
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif type(origin).__name__ == "TypeAliasType":
            hint = substitute(origin.__value__, dict(zip(origin.__type_params__, get_args(hint), strict=False)))
        else:
            return hint


_WRAPPERS: Final = (typing.Required, typing.NotRequired, typing.Final, typing.ClassVar)


def is_path(cls: Any) -> bool:
    """Whether a class is one of pathlib's: recognised by name, since pure packages do not import what touches files."""
    if not isinstance(cls, type):
        return False
    return any(one.__name__ == "PurePath" and one.__module__.partition(".")[0] == "pathlib" for one in cls.__mro__)


def is_union(hint: Any) -> bool:
    """Whether a hint is a union, in either spelling."""
    return get_origin(hint) in (Union, types.UnionType)


def list_choices(hint: Any) -> tuple[Any, ...]:
    """The types of a union, also of unions within it."""
    found: list[Any] = []
    for part in get_args(strip(hint)):
        found.extend(list_choices(part) if is_union(strip(part)) else [part])
    return tuple(found)


def list_parts(hint: Any) -> tuple[Any, ...]:
    """The hints that a hint is made of, such as those of a list's items or a union's types."""
    if get_origin(hint) in (Literal, collections.abc.Callable):
        return ()
    return tuple(part for part in get_args(hint) if part is not ...)


def substitute(hint: Any, variables: dict[Any, Any]) -> Any:
    """A hint with its type variables replaced; those that nobody knows stay."""
    if isinstance(hint, TypeVar):
        return variables.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if not parameters or (isinstance(hint, type) and not get_args(hint)):
        return hint
    return hint[tuple(variables.get(one, one) for one in parameters)]


def read_record(hint: Any) -> RecordType | None:
    """The fields of a class that has some; None for every other hint. Raises NameError for hints that cannot be found."""
    hint = strip(hint)
    cls = get_origin(hint) or hint
    if not isinstance(cls, type):
        return None
    shape: Any = cls
    if models.is_model(cls):
        return _read_model(cls) if models.is_pydantic(cls) else RecordType(cls, "model", (), takes_more=True)
    if issubclass(cls, msgspec.Struct):
        return _read_struct(cls, hint)
    if dataclasses.is_dataclass(cls):
        hints = _read_hints(cls, hint)
        fields = [
            RecordField(one.name, one.name, hints[one.name], _is_missing(one) and one.init)
            for one in dataclasses.fields(cls)
        ]
        return RecordType(cls, "dataclass", tuple(fields))
    if typing.is_typeddict(cls):
        hints, required = _read_hints(cls, hint), shape.__required_keys__
        fields = [RecordField(name, name, one, _is_needed(one, name in required)) for name, one in hints.items()]
        return RecordType(cls, "typed_dict", tuple(fields))
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        hints = _read_hints(cls, hint)
        fields = [RecordField(one, one, hints.get(one, Any), one not in shape._field_defaults) for one in shape._fields]
        return RecordType(cls, "named_tuple", tuple(fields), is_array=True)
    return None


def find_tags(record: RecordType) -> dict[str, frozenset[Any]]:
    """The keys whose value tells a class from others, with the values that it has: its tag, and fields that are Literal."""
    found: dict[str, frozenset[Any]] = {}
    for field in record.fields:
        hint = strip(field.hint)
        if get_origin(hint) is Literal:
            plain = (one.value if isinstance(one, enum.Enum) else one for one in get_args(hint))
            found[field.key] = frozenset(plain)
    if record.tag_key is not None:
        found[record.tag_key] = frozenset([record.tag])
    return found


def _read_struct(cls: Any, hint: Any) -> RecordType:
    hints, config = _read_hints(cls, hint), cls.__struct_config__
    fields = [RecordField(one.name, one.encode_name, hints[one.name], one.required) for one in msgspec.structs.fields(cls)]
    return RecordType(
        cls,
        "struct",
        tuple(fields),
        config.tag_field if config.tag is not None else None,
        config.tag,
        config.array_like,
        config.omit_defaults,
    )


def _read_model(cls: Any) -> RecordType:
    fields = []
    for name, field in models.get_fields(cls).items():
        key, _ = models.list_written_keys(field, name)
        fields.append(RecordField(name, key, field.annotation, field.is_required()))
    return RecordType(cls, "model", tuple(fields), takes_more=cls.model_config.get("extra") == "allow")


def _is_needed(hint: Any, is_needed: bool) -> bool:
    """Whether a key of a typed dict has to be there. Where hints are strings, Python does not see what is around them."""
    return get_origin(hint) is typing.Required or (is_needed and get_origin(hint) is not typing.NotRequired)


def _is_missing(field: dataclasses.Field[Any]) -> bool:
    from_pydantic = getattr(field.default, "is_required", None)
    if from_pydantic is not None:
        return bool(from_pydantic())
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _read_hints(cls: Any, hint: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    variables = _find_variables(cls, get_args(hint))
    return {name: substitute(one, variables) for name, one in hints.items()} if variables else hints


def _find_variables(cls: Any, args: tuple[Any, ...]) -> dict[Any, Any]:
    """What the type variables of a class stand for, those of the classes that it is made of too."""
    found = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        origin = get_origin(base)
        if origin not in (None, typing.Generic, typing.Protocol):
            inner = tuple(substitute(one, found) for one in get_args(base))
            found = _find_variables(origin, inner) | found
    return found
