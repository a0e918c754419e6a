"""Connections that belong to a thread, taken in it before a call goes to another one."""

from __future__ import annotations

from typing import Any


def take_connection(connection: Any) -> Any:
    """The connection that `django.db.connection` stands for in the present thread; any other as it is."""
    if not any(
        cls.__module__ == "django.utils.connection" and cls.__name__ == "ConnectionProxy" for cls in type(connection).__mro__
    ):
        return connection
    from django.db import connections  # type: ignore[import-untyped]  # noqa: PLC0415 - the user has loaded it

    return connections[connection.alias]
