"""From a URL to a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from holdfast.errors import InvalidConfiguration

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.store.contract import Store

POSTGRES_SCHEMES: Final = ("postgresql", "postgres")


def make_store(store: str | Store, clock: Callable[[], Instant] | None = None) -> Store:
    """The store of a URL; a store is given back as it is. Nothing is opened yet. `clock` is its source of time."""
    if not isinstance(store, str):
        if not hasattr(store, "begin"):
            raise _refused(repr(store))
        return store
    scheme, separator, _ = store.partition("://")
    if separator and scheme == "sqlite":
        from holdfast.store.sqlite.store import SqliteStore  # noqa: PLC0415 - only what is used is loaded

        return SqliteStore.from_url(store, clock=clock)
    if separator and scheme in POSTGRES_SCHEMES:
        return _make_postgres(store, clock)
    if separator and scheme == "memory":
        from holdfast.store.memory.store import MemoryStore  # noqa: PLC0415

        return MemoryStore(exclusive=True)
    raise _refused(repr(hide_password(store)))


def hide_password(url: str) -> str:
    """The URL as it may be shown: who, where, and which schema. Whatever else it says may be a secret."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "sqlite":
        return url
    plain, _, options = rest.partition("?")
    if "@" in rest and "@" not in plain:  # so the question mark was the password's
        plain, _, options = (rest.partition(":")[0] + "@" + rest.rpartition("@")[2]).partition("?")
    access, at, place = plain.rpartition("@")  # the last one: a password may hold the sign itself
    schema = dict(parse_qsl(options)).get("schema")
    return f"{scheme}://{access.partition(':')[0]}{at}{place}" + (f"?schema={schema}" if schema else "")


def name_database(url: str) -> str:
    """The URL as it may be shown, with the whole path of a SQLite file."""
    scheme, separator, path = url.partition(":///")
    if separator and scheme == "sqlite":
        return f"sqlite:///{Path(path).expanduser().resolve()}"
    return hide_password(url)


def _make_postgres(url: str, clock: Callable[[], Instant] | None) -> Store:
    try:
        from holdfast.store.postgres.store import PostgresStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise InvalidConfiguration(
            f"Expected to reach '{hide_password(url)}', but asyncpg, which speaks to PostgreSQL, is not installed. "
            "Run `pip install 'holdfast[postgres]'`."
        ) from error
    return PostgresStore.from_url(url, clock=clock)


def _refused(shown: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        "Expected the store to be 'sqlite:///file.db', 'postgresql://user@host/database' or 'memory://', "
        f"but it is {shown}. Correct the URL."
    )
