"""From a URL to a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import InvalidConfiguration

if TYPE_CHECKING:
    from holdfast.store.contract import Store


def open_store(store: str | Store) -> Store:
    """The store of a URL; a store is given back as it is. Nothing is opened yet."""
    if not isinstance(store, str):
        if not hasattr(store, "begin"):
            raise _refused(store)
        return store
    scheme, separator, _ = store.partition("://")
    if separator and scheme == "sqlite":
        from holdfast.store.sqlite.store import SqliteStore  # noqa: PLC0415 - only what is used is loaded

        return SqliteStore.from_url(store)
    if separator and scheme == "memory":
        from holdfast.store.memory.store import MemoryStore  # noqa: PLC0415

        return MemoryStore(exclusive=True)
    raise _refused(store)


def _refused(store: object) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"Expected the store to be 'sqlite:///file.db' or 'memory://', but it is {store!r}. Correct the URL."
    )
