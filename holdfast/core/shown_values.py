"""Values that are shown to people and programs: as JSON they are the same everywhere, in `--json` and in web frameworks."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, ClassVar, TypeVar

import msgspec


class ShownValue(msgspec.Struct, frozen=True):
    """A value that an engine or client answers with. FastAPI endpoints may return it, alone, in lists or in dictionaries."""

    def to_dict(self) -> dict[str, Any]:
        """The value as plain JSON values, times and enums as texts: as the command line prints it by `--json`."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return found

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The pairs of `to_dict`: by `dict(value)`, frameworks that do not know the type make JSON of it."""
        return iter(self.to_dict().items())

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        return make_pydantic_schema(cls, lambda value: value.to_dict())

    @property
    def __pydantic_serializer__(self) -> Any:
        """What pydantic writes the value with where the hint is `Any`."""
        return _make_serializer(type(self))

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, Any]:
        properties: dict[str, Any] = {name: {} for name in cls.__struct_fields__}
        return {"type": "object", "title": cls.__name__, "properties": properties}


ItemT = TypeVar("ItemT", bound=ShownValue)


class ShownPage(list[ItemT]):
    """A page of a list. `cursor` leads to the next page; it is None if that was all. FastAPI endpoints may return it."""

    items_name: ClassVar[str]
    """Under which name `to_dict` shows the items."""
    cursor: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The page with its cursor as plain JSON values: as the command line prints it by `--json`."""
        return {self.items_name: [one.to_dict() for one in self], "cursor": self.cursor}

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        return make_pydantic_schema(cls, lambda page: [one.to_dict() for one in page])

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": "array", "title": cls.__name__, "items": {"type": "object"}}


@functools.cache
def _make_serializer(kind: type[ShownValue]) -> Any:
    from pydantic_core import SchemaSerializer  # noqa: PLC0415 - as below

    return SchemaSerializer(make_pydantic_schema(kind, lambda value: value.to_dict()))


def make_pydantic_schema(kind: type[Any], to_json: Any) -> Any:
    """A schema for pydantic of values that are given as instances of a class, and written by a function."""
    from pydantic_core import core_schema  # noqa: PLC0415 - pydantic asks for it, so it is there; nobody else needs it

    written = core_schema.plain_serializer_function_ser_schema(to_json, return_schema=core_schema.any_schema())
    return core_schema.is_instance_schema(kind, serialization=written)
