"""The client for code without an event loop, and the client that activities find."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import SyncClient
from holdfast.errors import EngineClosed, ExecutionNotFound, WrongEventLoop
from tests.client.conftest import ROOT, Owner, make_engine
from tests.client.workflows import collect
from tests.eventually import eventually


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


@pytest.mark.usefixtures("owner")
async def test_a_sync_client_that_nobody_has_any_more_is_closed(file_url: str) -> None:
    def use() -> None:
        SyncClient(file_url).start(collect, 1, workflow_id="c")
        handle = SyncClient(file_url).handle("c")
        gc.collect()
        assert handle.status().workflow == "collect", "who has a handle has the client"

    await asyncio.to_thread(use)

    def count_left() -> int:
        gc.collect()
        return [thread.name for thread in threading.enumerate()].count("holdfast-sync-client")

    await eventually(lambda: not count_left(), "the threads of the clients to end")


_SLOW_SERVER = """
import os, signal, socket, threading
from holdfast import SyncClient
from holdfast.errors import EngineClosed, StoreError
listener = socket.create_server(("127.0.0.1", 0))
client = SyncClient(f"postgresql://nobody@127.0.0.1:{listener.getsockname()[1]}/none")
def call():
    try: client.nodes()
    except (StoreError, EngineClosed) as error: print(type(error).__name__, flush=True)
"""


def _run_beside_slow_server(code: str) -> list[str]:
    """Run a program whose client connects to a server that accepts connections and does not answer."""
    command = [sys.executable, "-W", "ignore", "-c", _SLOW_SERVER + code]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=40, check=True)
    return done.stdout.decode().split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_child_that_is_forked_during_the_first_call_is_told_so_too() -> None:
    said = _run_beside_slow_server(
        "threading.Thread(target=call, daemon=True).start()\n"
        "connection, _ = listener.accept()\n"
        "pid = os.fork()\n"
        "if pid == 0: signal.alarm(30); call(); client.close(); os._exit(0)\n"
        "os.waitpid(pid, 0)\nos._exit(0)\n"
    )
    assert said == ["EngineClosed"]


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there are no such signals here")
def test_a_signal_handler_may_call_in_the_middle_of_the_first_call() -> None:
    said = _run_beside_slow_server(
        "def on_signal(*_): connection.close(); listener.close(); call()\n"
        "signal.signal(signal.SIGUSR1, on_signal)\n"
        "def disturb():\n"
        "    global connection\n"
        "    connection, _ = listener.accept()\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "threading.Thread(target=disturb, daemon=True).start()\n"
        "call()\n"
    )
    assert said == ["StoreUnavailable", "StoreUnavailable"]


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
