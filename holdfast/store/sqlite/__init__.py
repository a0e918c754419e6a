"""The store in one SQLite file, which one process owns."""

from holdfast.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
