"""The JSON Schema by which values are checked where the code is not: whatever a type's decoder takes, fits it.

It is no description of the type, which `input_schemas.make_schema` makes for people: that says what should be sent, and may
be narrower than the type (a tag that may be missing, a set without duplicates, what the author wrote into it by hand). This
one is made of what the decoder checks, as msgspec and pydantic tell it, and of keywords alone that mean the same to both.
What is not known here is left out, which is to say that every value fits. Patterns are those of Python's `re`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import inspect

from holdfast.core import decoders, models
from holdfast.core.record_types import RecordType

Schema = dict[str, Any]

_EXACT_FLOAT: Final = 2.0**53
"""Beyond this a whole number may be rounded when it is read as a float, and get over a bound by that."""
_KINDS: Final[Mapping[type, Any]] = {
    inspect.NoneType: "null",
    inspect.BoolType: "boolean",
    inspect.BytesType: "string",
    inspect.ByteArrayType: "string",
    inspect.MemoryViewType: "string",
    inspect.DateTimeType: "string",
    inspect.TimeType: "string",
    inspect.DateType: "string",
    inspect.TimeDeltaType: "string",
    inspect.UUIDType: "string",
    inspect.DecimalType: ["string", "number"],
}
_NUMBER_TEXT: Final = r"\d|[iI][nN][fF]|[nN][aA][nN]"
_BOOL_TEXT: Final = r"^(?:[01nNyYtTfF]|[oO][nN]|[oO][fF][fF]|[nN][oO]|[yY][eE][sS]|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$"
_NUMBER: Final = {"type": ["string", "number", "boolean"], "pattern": _NUMBER_TEXT}
_TIME: Final = {"type": ["string", "number"], "pattern": r"\d"}
_ARRAY: Final = {"type": "array"}
_KINDS_IN_MODELS: Final[Mapping[str, Schema]] = {
    "str": {"type": "string"},
    "none": {"type": "null"},
    "uuid": {"type": "string", "pattern": "[0-9a-fA-F]{8}"},
    "int": {"type": ["string", "number", "boolean"], "pattern": r"\d"},
    "bool": {"type": ["string", "number", "boolean"], "pattern": _BOOL_TEXT},
    "float": _NUMBER,
    "decimal": _NUMBER,
    "date": _TIME,
    "datetime": _TIME,
    "time": _TIME,
    "timedelta": _TIME,
    "list": _ARRAY,
    "set": _ARRAY,
    "frozenset": _ARRAY,
    "tuple": _ARRAY,
    "dict": {"type": "object"},
}
"""What pydantic takes as JSON: it makes numbers of texts, and times of numbers. A pattern counts for texts alone."""
_INSIDE: Final = frozenset({"model-field", "default", "function-after"})
"""Parts of pydantic's schemas whose value is read by the schema inside of them first."""


def make_check_schema(hint: Any) -> Schema:
    """What every value fits that the decoder of a hint takes; empty if nothing is known."""
    try:
        return _Describer().describe_whole(hint)
    except Exception:  # noqa: BLE001 - users' types have a say in it
        return {}


class _Describer:
    """Describes one hint. Classes, which may hold themselves, are described once and referred to."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._described: dict[str, Schema] = {}
        self._kept: list[Any] = []
        """What is known by its identity, which must not be used again meanwhile."""
        self._takes_numbers_as_text = False
        """Whether the present model makes texts of numbers."""

    def describe_whole(self, hint: Any) -> Schema:
        schema = self._describe_hint(hint)
        return {**schema, "$defs": self._described} if self._described else schema

    def _describe_hint(self, hint: Any) -> Schema:
        return self._describe(inspect.type_info(decoders.rewrite(hint)))

    def _describe(self, info: Any) -> Schema:
        describe = _DESCRIBE.get(type(info))
        if describe is not None:
            return describe(self, info)
        return {"type": _KINDS[type(info)]} if type(info) in _KINDS else {}

    def _refer(self, key: Any, described: Any) -> Schema:
        """A reference to the schema of something that may hold itself."""
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = str(len(self._names))
            self._kept.append(described)
            self._described[name] = {}  # its place
            self._described[name] = self._describe_referred(described)
        return {"$ref": f"#/$defs/{name}"}

    def _describe_referred(self, described: Any) -> Schema:
        match described:
            case RecordType():
                return self._describe_record(described)
            case inspect.NamedTupleType() | inspect.StructType(array_like=True):
                return self._describe_array(described)
            case _:
                return self._describe_object(described)

    # --- what msgspec reads ---

    def describe_metadata(self, info: inspect.Metadata) -> Schema:
        return self._describe(info.type)

    def describe_class(self, info: Any) -> Schema:
        return self._refer(id(info), info)

    def describe_union(self, info: inspect.UnionType) -> Schema:
        return {"anyOf": [self._describe(one) for one in info.types]}

    def describe_tuple(self, info: inspect.TupleType) -> Schema:
        return self._describe_items(info.item_types, len(info.item_types), most=len(info.item_types))

    def _describe_object(self, info: Any) -> Schema:
        properties = {field.encode_name: self._describe(field.type) for field in info.fields}
        required = [field.encode_name for field in info.fields if field.required]
        if getattr(info, "tag_field", None) is not None:  # not required: a struct that is no choice may do without
            properties[info.tag_field] = {"enum": [info.tag]}
        is_closed = getattr(info, "forbid_unknown_fields", False)
        return {**_describe_keys(properties, required), **({"additionalProperties": False} if is_closed else {})}

    def _describe_array(self, info: Any) -> Schema:
        tag = [] if getattr(info, "tag", None) is None else [{"enum": [info.tag]}]
        least = max((index for index, field in enumerate(info.fields, 1) if field.required), default=0)
        return self._describe_items([field.type for field in info.fields], least, tag)

    def _describe_items(
        self, infos: Iterable[Any], least: int, first: Iterable[Schema] = (), *, most: int | None = None
    ) -> Schema:
        tag = list(first)
        schema: Schema = {"type": "array", "minItems": least + len(tag)}
        if items := [*tag, *map(self._describe, infos)]:
            schema["prefixItems"] = items
        return schema if most is None else {**schema, "maxItems": most}

    def describe_list(self, info: Any) -> Schema:
        """A list or a set: of a set, duplicates do not count."""
        is_set = isinstance(info, inspect.SetType | inspect.FrozenSetType)
        most = None if is_set else info.max_length
        bounds = _drop_missing({"minItems": info.min_length, "maxItems": most})
        return {"type": "array", "items": self._describe(info.item_type), **bounds}

    def describe_dict(self, info: Any) -> Schema:
        """Several keys may be read as one, so there may be more of them than the type takes entries."""
        schema = {"type": "object", "additionalProperties": self._describe(info.value_type)}
        key = info.key_type.type if isinstance(info.key_type, inspect.Metadata) else info.key_type
        if isinstance(key, inspect.StrType):
            schema["propertyNames"] = _describe_text(self, key)
            return {**schema, **_drop_missing({"minProperties": info.min_length, "maxProperties": info.max_length})}
        return {**schema, **_drop_missing({"minProperties": info.min_length})}

    # --- what is read here ---

    def describe_custom(self, info: inspect.CustomType) -> Schema:
        cls: Any = info.cls
        record = decoders.find_stand_record(cls)
        if record is not None:
            return self._refer(cls, record)
        if models.is_pydantic(cls):
            models.get_fields(cls)  # which completes it
            return self._describe_part(cls.__pydantic_core_schema__)
        return {}

    def _describe_record(self, record: RecordType) -> Schema:
        if record.is_array:
            return {"type": "array"}
        properties = {field.key: self._describe_hint(field.hint) for field in record.fields}
        return _describe_keys(properties, [field.key for field in record.fields if field.is_required])

    # --- what pydantic reads ---

    def _describe_part(self, part: Any) -> Schema:
        """A part of the schema that pydantic made of a model: those that functions of the user's read first fit all."""
        kind = part.get("type")
        match kind:
            case "definitions":
                for one in part["definitions"]:
                    self._names.setdefault(("ref", one["ref"]), f"r{len(self._names)}")
                for one in part["definitions"]:
                    self._described[self._names["ref", one["ref"]]] = self._describe_part(one)
                return self._describe_part(part["schema"])
            case "definition-ref":
                return self._refer_to_definition(part["schema_ref"])
            case "model":
                return {} if part.get("custom_init") else self._describe_model(part)
            case "model-fields":
                return self._describe_fields(part["fields"])
            case "str" if self._takes_numbers_as_text or part.get("coerce_numbers_to_str"):
                return {"type": ["string", "number"]}
            case "nullable":
                return {"anyOf": [self._describe_part(part["schema"]), {"type": "null"}]}
            case "list" | "set" | "frozenset":
                return {"type": "array", "items": self._describe_part(part.get("items_schema", {}))}
            case "dict":
                return {"type": "object", "additionalProperties": self._describe_part(part.get("values_schema", {}))}
            case "int" | "float":
                return {**_KINDS_IN_MODELS[kind], **_describe_bounds(part.get, is_int=kind == "int")}
            case _:
                return self._describe_part(part["schema"]) if kind in _INSIDE else _KINDS_IN_MODELS.get(kind, {})

    def _refer_to_definition(self, ref: str) -> Schema:
        name = self._names.get(("ref", ref))
        return {} if name is None else {"$ref": f"#/$defs/{name}"}

    def _describe_model(self, model: Any) -> Schema:
        before = self._takes_numbers_as_text
        self._takes_numbers_as_text = bool((model.get("config") or {}).get("coerce_numbers_to_str"))
        try:
            return self._describe_part(model["schema"])
        finally:
            self._takes_numbers_as_text = before

    def _describe_fields(self, fields: Mapping[str, Any]) -> Schema:
        """The fields of a model, each under its name or one of its aliases; an alias goes before the name."""
        properties: Schema = {}
        required: list[str] = []
        needed: list[Schema] = []
        for name, field in fields.items():
            alias = field.get("validation_alias") or name
            if isinstance(alias, str):
                properties[alias] = self._describe_part(field)
            if _has_default(field):
                continue
            if alias == name:
                required.append(name)
            else:
                needed.append({"anyOf": [{"required": [key]} for key in _list_keys(alias, name)]})
        return {**_describe_keys(properties, required), **({"allOf": needed} if needed else {})}


def _has_default(part: Any) -> bool:
    """Whether a field may be missing."""
    return part.get("type") == "default" or ("schema" in part and _has_default(part["schema"]))


def _list_keys(alias: Any, name: str) -> list[str]:
    """The keys under which pydantic finds a field: its name, and its alias, which may be a path or several."""
    paths = alias if isinstance(alias, list) and isinstance(alias[0], list) else [alias]
    return list(dict.fromkeys([name, *(path if isinstance(path, str) else path[0] for path in paths)]))


def _describe_keys(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _describe_number(_: _Describer, info: Any) -> Schema:
    is_int = isinstance(info, inspect.IntType)
    bounds = _describe_bounds(lambda name: getattr(info, name), is_int=is_int)
    return {"type": "integer" if is_int else "number", **bounds}


def _describe_bounds(get: Callable[[str], Any], *, is_int: bool) -> Schema:
    """The bounds of numbers, as `ge`, `gt`, `le` and `lt` tell them."""
    bounds = {"minimum": get("ge"), "exclusiveMinimum": get("gt"), "maximum": get("le"), "exclusiveMaximum": get("lt")}
    return {name: one for name, one in _drop_missing(bounds).items() if is_int or abs(one) < _EXACT_FLOAT}


def _describe_text(_: _Describer, info: inspect.StrType) -> Schema:
    bounds = {"minLength": info.min_length, "maxLength": info.max_length, "pattern": info.pattern}
    return {"type": "string", **_drop_missing(bounds)}


def _describe_literal(_: _Describer, info: inspect.LiteralType) -> Schema:
    return {"enum": list(info.values)}


def _describe_enum(_: _Describer, info: inspect.EnumType) -> Schema:
    cls = info.cls
    if getattr(cls._missing_, "__func__", None) is not getattr(enum.Enum._missing_, "__func__", None):
        return {}  # it may take other values, too
    return {"enum": [one for one in cls._value2member_map_ if isinstance(one, str | int)]}


def _drop_missing(bounds: Schema) -> Schema:
    return {name: one for name, one in bounds.items() if one is not None}


_DESCRIBE: Final[Mapping[type, Callable[[_Describer, Any], Schema]]] = {
    inspect.Metadata: _Describer.describe_metadata,
    inspect.IntType: _describe_number,
    inspect.FloatType: _describe_number,
    inspect.StrType: _describe_text,
    inspect.LiteralType: _describe_literal,
    inspect.EnumType: _describe_enum,
    inspect.UnionType: _Describer.describe_union,
    inspect.TupleType: _Describer.describe_tuple,
    inspect.VarTupleType: _Describer.describe_list,
    inspect.ListType: _Describer.describe_list,
    inspect.SetType: _Describer.describe_list,
    inspect.FrozenSetType: _Describer.describe_list,
    inspect.DictType: _Describer.describe_dict,
    inspect.StructType: _Describer.describe_class,
    inspect.DataclassType: _Describer.describe_class,
    inspect.TypedDictType: _Describer.describe_class,
    inspect.NamedTupleType: _Describer.describe_class,
    inspect.CustomType: _Describer.describe_custom,
}
"""How each kind of type that msgspec knows is described, beside those of `_KINDS`."""
