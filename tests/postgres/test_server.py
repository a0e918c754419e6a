"""The servers that other tests rely on do what they say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.eventually import eventually_blocking
from tests.postgres.access import connect, drop_schema, with_schema
from tests.postgres.processes import STARTING
from tests.postgres.server import PostgresServer

ROOT = Path(__file__).resolve().parents[2]


def ask(server: PostgresServer, query: str) -> object:
    with connect(server.url()) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def write_rows(server: PostgresServer, count: int) -> None:
    with connect(server.url()) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (number bigint)")
        connection.execute("INSERT INTO kept SELECT generate_series(1, %s)", [count])


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One for the tests that only look at it; with settings of its own."""
    with PostgresServer(settings={"max_connections": 20, "cluster_name": "it's"}) as server:
        yield server


def test_server_is_durable_by_its_settings(server: PostgresServer) -> None:
    assert ask(server, "SHOW fsync") == "on"
    assert ask(server, "SHOW synchronous_commit") == "on"
    assert ask(server, "SHOW full_page_writes") == "on"


def test_settings_are_those_that_were_given(server: PostgresServer) -> None:
    assert ask(server, "SHOW max_connections") == "20"
    assert ask(server, "SHOW cluster_name") == "it's"


def test_server_does_not_run_as_root(server: PostgresServer) -> None:
    assert psutil.Process(server.pid).uids().effective != 0


def test_server_listens_on_a_unix_socket_too(server: PostgresServer) -> None:
    address = f"host={server.socket_folder} port={server.port} user=holdfast dbname=postgres"

    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT inet_server_addr()").fetchone() == (None,)


def test_restart_keeps_port_and_data(own_postgres: PostgresServer) -> None:
    write_rows(own_postgres, 1000)
    port, pid = own_postgres.port, own_postgres.pid

    own_postgres.restart()

    assert own_postgres.port == port
    assert own_postgres.pid != pid
    assert ask(own_postgres, "SELECT count(*) FROM kept") == 1000
    assert "was not properly shut down" not in own_postgres.log


def test_immediate_stop_is_a_crash_and_the_start_recovers(own_postgres: PostgresServer) -> None:
    write_rows(own_postgres, 1000)

    own_postgres.restart("immediate")

    assert "was not properly shut down; automatic recovery in progress" in own_postgres.log
    assert ask(own_postgres, "SELECT count(*) FROM kept") == 1000


def test_killed_server_recovers(own_postgres: PostgresServer) -> None:
    write_rows(own_postgres, 7)

    own_postgres.kill()
    own_postgres.start()

    assert ask(own_postgres, "SELECT count(*) FROM kept") == 7


def test_stopped_server_refuses_connections(own_postgres: PostgresServer) -> None:
    own_postgres.stop()

    assert not own_postgres.is_running()
    with pytest.raises(psycopg.OperationalError):
        connect(own_postgres.url())


def test_close_leaves_nothing_behind() -> None:
    with PostgresServer() as server:
        pid, folder = server.pid, server.log_path.parent
    server.close()

    assert not psutil.pid_exists(pid)
    assert not folder.exists()


def test_server_that_cannot_start_says_why() -> None:
    server = PostgresServer(settings={"max_connections": "many"})

    with pytest.raises(RuntimeError, match="max_connections"):
        server.start()
    server.close()


def test_server_and_its_folder_end_with_the_tests_even_if_they_are_killed() -> None:
    code = (
        "from tests.postgres.server import PostgresServer as S; s = S(); s.start(); print(s.log_path, flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tests:
        assert tests.stdout is not None
        folder = Path(tests.stdout.readline().decode().strip()).parent
        assert folder.exists()

        tests.kill()
        tests.wait()

    eventually_blocking(lambda: not folder.exists(), "the folder to be gone", STARTING)


def test_each_test_has_a_schema_of_its_own(postgres_server: str, postgres_url: str) -> None:
    schema = postgres_url.partition("?schema=")[2]

    with connect(postgres_url) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute("CREATE TABLE mine (id bigint)")
        assert connection.execute("SELECT to_regclass(%s) IS NULL", [f"{schema}.mine"]).fetchone() == (False,)

    drop_schema(postgres_server, schema)
    with connect(postgres_server) as connection:
        assert connection.execute("SELECT to_regclass(%s) IS NULL", [f"{schema}.mine"]).fetchone() == (True,)


def test_schema_is_added_to_what_a_url_says_already() -> None:
    assert with_schema("postgresql://u:p@h:1/d?sslmode=disable", "s") == "postgresql://u:p@h:1/d?sslmode=disable&schema=s"
