"""Making the schema, and bringing it up to date: by one node, whoever comes first."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from holdfast.errors import DatabaseNotFound, NewerDatabase, OlderDatabase, StoreError
from holdfast.log_events import LogEvent, tag
from holdfast.store.postgres.failures import DRIVER_ERRORS, translate
from holdfast.store.postgres.statements import place, quote_name, read_migrations, read_schema

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection
    from holdfast.store.postgres.urls import DatabaseAddress

log = logging.getLogger("holdfast.store")

VERSION: Final = 12
"""The version of the schema that this program knows."""
_OLDEST_SERVER: Final = 140_000
_LOCK: Final = 7_525_341_930_286_112_100
"""Who holds it migrates; any number would do that nobody else uses."""


async def prepare_schema(connections: Connections, *, make: bool = True, upgrade: bool = True) -> None:
    """See that the schema is there and is ours. Raises StoreError that says what is wrong.

    Unless it may `make` or `upgrade` one, a schema that is missing or older is an error.
    """
    address = connections.address
    async with connections.use("open") as connection, connection.transaction():
        await _check_server(connection, address)
        version = await read_version(connection, address)
    if version == VERSION:
        return  # nothing to do, and a role that may not create anything can go on
    if version is None and not make:
        raise DatabaseNotFound(
            f"Expected a database of Holdfast in schema '{address.schema}' of {address.shown}, but there is none. "
            "Check the URL."
        )
    if version is not None and not upgrade:
        raise OlderDatabase(
            f"Expected schema '{address.schema}' of {address.shown} to have version {VERSION}, but it has {version}: "
            "an older Holdfast wrote it. Open it once with an engine of this version, which brings it up to date."
        )
    connection = await connections.connect(lock_timeout="0", statement_timeout="0", idle_in_transaction_session_timeout="0")
    try:
        async with connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
            await _bring_up_to_date(connection, address)
    except DRIVER_ERRORS as error:
        raise translate(error, "bring up to date the schema of", address.shown) from error
    finally:
        connection.terminate()


async def read_version(connection: Connection, address: DatabaseAddress) -> int | None:
    """The version of the schema in the database; None if there is none. Raises StoreError if it is a newer program's."""
    if await connection.fetchval("SELECT to_regclass($1)", place("holdfast.schema_version", address.schema)) is None:
        return None
    found = await connection.fetchval(place("SELECT max(version) FROM holdfast.schema_version", address.schema))
    version: int | None = found
    if version is None or version > VERSION:
        raise NewerDatabase(
            f"Expected schema '{address.schema}' of {address.shown} to have version {VERSION} or less, but it has "
            f"{version}. Use a newer Holdfast, or another schema."
        )
    return version


async def _bring_up_to_date(connection: Connection, address: DatabaseAddress) -> None:
    version = await read_version(connection, address)
    if version is None:
        # Asked first: IF NOT EXISTS wants the right to create one even where it is there.
        if not await connection.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", address.schema):
            await connection.execute(f"CREATE SCHEMA {quote_name(address.schema)}")
        await connection.execute(read_schema(address.schema))
        await connection.execute(place("INSERT INTO holdfast.schema_version VALUES ($1)", address.schema), VERSION)
        return
    for number, sql in read_migrations(address.schema):
        if number > version:
            log.info("migrating schema '%s' from version %d to %d", address.schema, version, number)
            await connection.execute(sql)
            version = number
    await connection.execute(place("UPDATE holdfast.schema_version SET version = $1", address.schema), version)


async def _check_server(connection: Connection, address: DatabaseAddress) -> None:
    ((number, encoding, is_replica, durability),) = await connection.fetch(
        "SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'), pg_is_in_recovery(), "
        "current_setting('synchronous_commit')"
    )
    if number < _OLDEST_SERVER:
        raise StoreError(
            f"Expected PostgreSQL 14 or newer at {address.shown}, but it is {number // 10_000}. Upgrade the server."
        )
    if encoding != "UTF8":
        raise StoreError(
            f"Expected the database {address.shown} to have encoding UTF8, but it has {encoding}. "
            "Create one with ENCODING 'UTF8'."
        )
    if is_replica:
        raise StoreError(f"Expected to write to {address.shown}, but it is a replica. Connect to the primary.")
    if durability == "off":
        log.warning(
            "%s has synchronous_commit=off: what it says it committed may be lost in a crash",
            address.shown,
            extra=tag(LogEvent.COMMITS_NOT_DURABLE),
        )
