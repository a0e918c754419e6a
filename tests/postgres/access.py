"""Plain connections to look behind the store's back, and the life of a schema."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import sql


def with_schema(url: str, schema: str) -> str:
    """The same database, in that schema."""
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return urlunsplit(parts._replace(query=urlencode({**query, "schema": schema})))


def connect(url: str) -> psycopg.Connection:
    """A connection in autocommit to what a store's URL names, with the schema of `?schema=` first in the search path."""
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    schema = query.pop("schema", None)
    connection = psycopg.connect(urlunsplit(parts._replace(query=urlencode(query))), autocommit=True)
    if schema is not None:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
    return connection


def drop_schema(url: str, schema: str) -> None:
    """Drop a test's schema and all that is in it. Raises if the test left a transaction open on it."""
    with connect(url) as connection:
        # What is dropped need not be safe on disk, and a lock must not stop all tests.
        connection.execute("SET synchronous_commit TO off")
        connection.execute("SET lock_timeout TO '5s'")
        connection.execute("SET client_min_messages TO warning")
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
