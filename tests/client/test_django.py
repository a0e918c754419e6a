"""`connection=` with Django: what a client is asked for within `atomic()` happens if the block commits."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import django  # type: ignore[import-untyped]
import pytest
from django.conf import settings  # type: ignore[import-untyped]
from django.db import connection, connections, transaction  # type: ignore[import-untyped]

from holdfast import Client, SyncClient
from holdfast.engine.sync_verbs import SyncWorkflowHandle
from holdfast.errors import ExecutionNotFound, InvalidArguments
from tests.client.conftest import make_engine


def configure(url: str) -> None:
    parts = urlsplit(url.partition("?")[0])
    options = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
    }
    if not settings.configured:
        file = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        settings.configure(DATABASES={"default": options, "file": file})
        django.setup()
    connections["default"].settings_dict.update(options)


@pytest.fixture
def client(postgres_url: str) -> Iterator[SyncClient]:
    """A client on a database with a schema, to which Django's connections lead too."""
    configure(postgres_url)
    with SyncClient(postgres_url) as client:
        yield client
        connections.close_all()


def count_rows() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM orders")
        return int(cursor.fetchone()[0])


def add_row() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE IF NOT EXISTS orders (id integer)")
        cursor.execute("INSERT INTO orders VALUES (1)")


class Undone(Exception):
    pass


@pytest.mark.parametrize("kind", ["proxy", "wrapper", "driver"])
def test_T1_a_start_within_atomic_happens_if_the_block_commits(client: SyncClient, kind: str) -> None:
    def take() -> Any:
        return {"proxy": connection, "wrapper": connections["default"], "driver": connection.connection}[kind]

    with transaction.atomic():
        add_row()
        kept: SyncWorkflowHandle[Any] = client.start("collect", 1, workflow_id="kept", connection=take())
        client.signal_workflow("kept", "value", 1, connection=take())
        seen = threading.Thread(target=lambda: found.append(is_there(client, "kept")))
        found: list[bool] = []
        seen.start()
        seen.join()
    with contextlib.suppress(Undone), transaction.atomic():
        add_row()
        client.start("collect", 1, workflow_id="dropped", connection=take())
        raise Undone

    assert found == [False], "before the commit nobody sees it"
    assert kept.created is None
    assert (is_there(client, "kept"), is_there(client, "dropped")) == (True, False)
    assert count_rows() == 1


def is_there(client: SyncClient, workflow_id: str) -> bool:
    try:
        client.query_status(workflow_id)
    except ExecutionNotFound:
        return False
    return True


def test_T1_each_thread_has_its_own_transaction(client: SyncClient) -> None:
    began, may_end = threading.Event(), threading.Event()

    def roll_back() -> None:
        try:
            with transaction.atomic():
                client.start("collect", 1, workflow_id="dropped", connection=connection)
                began.set()
                may_end.wait(30)
                raise Undone
        except Undone:
            connection.close()

    thread = threading.Thread(target=roll_back)
    thread.start()
    began.wait(30)
    with transaction.atomic():
        client.start("collect", 1, workflow_id="kept", connection=connection)
    may_end.set()
    thread.join()

    assert (is_there(client, "kept"), is_there(client, "dropped")) == (True, False)


def test_T1_a_nested_block_that_is_rolled_back_takes_its_start_with_it(client: SyncClient) -> None:
    with transaction.atomic():
        client.start("collect", 1, workflow_id="outer", connection=connection)
        with contextlib.suppress(Undone), transaction.atomic():
            client.start("collect", 1, workflow_id="inner", connection=connection)
            raise Undone

    assert (is_there(client, "outer"), is_there(client, "inner")) == (True, False)


def test_connections_without_a_transaction_or_to_another_database_are_refused(client: SyncClient) -> None:
    with pytest.raises(InvalidArguments, match=r"transaction\.atomic\(\)"):
        client.start("collect", 1, connection=connection)
    with pytest.raises(InvalidArguments, match="sqlite"), transaction.atomic(using="file"):
        client.start("collect", 1, connection=connections["file"])


async def test_an_async_client_refuses_what_differs_by_thread(postgres_url: str) -> None:
    configure(postgres_url)
    async with make_engine(postgres_url) as engine, Client(postgres_url) as client:
        for verbs in (engine, client):
            with pytest.raises(InvalidArguments, match=r"connection\.connection"):
                await verbs.start("collect", 1, connection=connection)
