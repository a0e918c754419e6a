"""What is in a database, behind the engine's back; and what is left to do there: nothing, once everything has ended."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

from tests.postgres.access import connect

QUEUES = (
    "SELECT 'execution', workflow_id, status, state_version, nodes, details FROM executions WHERE closed_at IS NULL",
    "SELECT 'inbox', id, execution_id, workflow_id, attempts, route, body FROM inbox ORDER BY id",
    "SELECT 'timer', execution_id, number, attempt, due FROM timers",
    "SELECT 'offer', execution_id, number, attempt, node FROM activities",
)
SESSIONS = """
SELECT 'session', pid, application_name, state, wait_event, clock_timestamp() - xact_start, clock_timestamp() - state_change,
    left(query, 80)
FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start
"""
MOST_SHOWN = 300
"""Characters of one value."""


def read_rows(url: str, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query that both kinds of database understand."""
    if url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
            return file.execute(query).fetchall()
    with connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


def find_rest(url: str, limit: int = 20) -> list[str]:
    """Executions that are open, and what waits in queues, a line each."""
    rows = [row for query in QUEUES for row in read_rows(url, f"{query} LIMIT {limit}")]
    return [" ".join(map(_show, row)) for row in rows]


def describe_rest(url: str) -> str:
    """The same for people, whatever became of the database."""
    try:
        sessions = [] if url.startswith("sqlite:") else [" ".join(map(_show, row)) for row in read_rows(url, SESSIONS)]
        return "\n".join(["still to do:", *find_rest(url), "transactions:", *sessions])
    except (psycopg.Error, sqlite3.Error) as error:
        return f"what is still to do cannot be told: {error}"


def _show(value: object) -> str:
    return (value.decode(errors="replace") if isinstance(value, bytes) else str(value))[:MOST_SHOWN]
