"""What is left to do in a database: nothing, once everything has ended."""

from __future__ import annotations

import psycopg

from tests.postgres.access import connect

QUEUES = (
    """SELECT 'execution', workflow_id, status, state_version, node, route, convert_from(details, 'UTF8')
    FROM executions WHERE closed_at IS NULL ORDER BY id LIMIT %s""",
    """SELECT 'inbox', id, execution_id, workflow_id, attempts, route, left(convert_from(body, 'UTF8'), 200)
    FROM inbox ORDER BY id LIMIT %s""",
    "SELECT 'timer', execution_id, number, attempt, due FROM timers LIMIT %s",
    "SELECT 'offer', execution_id, number, attempt, node FROM activities LIMIT %s",
)
SESSIONS = """
SELECT 'session', pid, application_name, state, wait_event, clock_timestamp() - xact_start, clock_timestamp() - state_change,
    left(query, 80)
FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start
"""


def find_rest(url: str, limit: int = 20) -> list[str]:
    """Executions that are open, and what waits in queues, a line each."""
    with connect(url) as connection:
        rows = [row for query in QUEUES for row in connection.execute(query.encode(), [limit])]
    return [" ".join(map(str, row)) for row in rows]


def describe_rest(url: str) -> str:
    """The same for people, whatever became of the database."""
    try:
        with connect(url) as connection:
            sessions = [" ".join(map(str, row)) for row in connection.execute(SESSIONS)]
        return "\n".join(["still to do:", *find_rest(url), "transactions:", *sessions])
    except psycopg.Error as error:
        return f"what is still to do cannot be told: {error}"
