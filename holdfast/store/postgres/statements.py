"""The statements of the store, for the schema that a URL names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from holdfast.store.listing import add_counts
from holdfast.store.queries import load_queries

DEFAULT_SCHEMA: Final = "holdfast"
_PACKAGE: Final = "holdfast.store.postgres"


def quote_name(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def place(sql: str, schema: str) -> str:
    """SQL for another schema than `holdfast`."""
    return sql if schema == DEFAULT_SCHEMA else sql.replace("holdfast.", quote_name(schema) + ".")


@lru_cache
def statements_for(schema: str) -> Mapping[str, str]:
    """The statements of the store by name, for this schema."""
    return MappingProxyType({name: place(sql, schema) for name, sql in add_counts(load_queries(_PACKAGE)).items()})


def read_schema(schema: str) -> str:
    """The script that makes the whole schema in a new database."""
    return place(files(_PACKAGE).joinpath("schema.sql").read_text("utf-8"), schema)


def read_migrations(schema: str) -> list[tuple[int, str]]:
    """The steps from one version to the next, by the version that each comes to."""
    folder = files(_PACKAGE).joinpath("migrations")
    names = sorted(one.name for one in folder.iterdir() if one.name.endswith(".sql"))
    return [(int(name.partition("_")[0]), place(folder.joinpath(name).read_text("utf-8"), schema)) for name in names]
