"""The client for code without an event loop, and the client that activities find."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import SyncClient
from holdfast.errors import EngineClosed, ExecutionNotFound, WrongEventLoop
from tests.client.conftest import ROOT, Owner, make_engine
from tests.client.workflows import collect


@pytest.mark.usefixtures("owner")
def test_U1_threads_share_a_sync_client(file_url: str) -> None:
    with SyncClient(file_url) as client:
        handle = client.start(collect, 20, workflow_id="c")
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda number: client.signal_workflow("c", "value", number), range(20)))

        assert sorted(handle.result()) == list(range(20))
        assert handle.status().workflow == "collect"
        assert client.handle("c", workflow=collect).result() == handle.result()
        assert (handle.workflow_id, handle.created, handle.org) == ("c", True, "default")
        with pytest.raises(ExecutionNotFound):
            client.query_status("nobody")
    with pytest.raises(EngineClosed):
        client.nodes()


async def test_a_sync_client_does_not_block_a_loop(file_url: str) -> None:
    async with make_engine(file_url):
        client = SyncClient(file_url)
        with pytest.raises(WrongEventLoop, match="to_thread"):
            client.nodes()
        assert len(await asyncio.to_thread(client.nodes)) == 1
        await asyncio.to_thread(client.close)


@pytest.mark.usefixtures("owner")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_child_is_told_to_make_its_own_client(file_url: str) -> None:
    code = (
        "import os, sys\nfrom holdfast import SyncClient\nfrom holdfast.errors import EngineClosed\n"
        "used, unused = SyncClient(sys.argv[1]), SyncClient(sys.argv[1])\nused.nodes()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try: used.nodes()\n"
        "    except EngineClosed as error: print(len(unused.nodes()), 'forked' in str(error), flush=True)\n"
        "    unused.close()\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\nprint(len(used.nodes()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, file_url], cwd=ROOT, stdout=subprocess.PIPE, timeout=60, check=True
    )

    assert done.stdout.decode().split() == ["1", "True", "1"], "and the program ends by itself, though nothing was closed"


async def test_U1_activities_find_the_client_of_their_engine(file_url: str, postgres_url: str) -> None:
    for url in ("memory://", file_url, postgres_url):
        async with make_engine(url) as engine:
            target = await engine.start(collect, 2, workflow_id="t")
            handle = await engine.start("calls", "t", workflow_id="calls")

            assert await handle.result() == ["collect", "collect"]
            assert sorted(await target.result()) == ["from a thread", "from the loop"]


def test_an_owner_can_be_asked_at_once(file_url: str) -> None:
    owner = Owner(file_url)
    with SyncClient(file_url) as client:
        assert client.list() == []
    owner.end()


@pytest.mark.usefixtures("owner")
def test_a_thread_that_waits_is_told_when_the_client_is_closed(file_url: str) -> None:
    client = SyncClient(file_url)
    handle = client.start(collect, 1, workflow_id="c")
    told: list[BaseException] = []

    def wait() -> None:
        try:
            handle.result()
        except BaseException as error:
            told.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    client.query_status("c")  # by then the wait was sent, or it was refused
    client.close()
    thread.join(60)
    assert [type(error) for error in told] == [EngineClosed]
