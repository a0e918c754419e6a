"""An engine is used in the loop in which it was opened; in any other, its methods say so instead of hanging."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import Context, Engine, workflow
from holdfast.engine.handles import WorkflowHandle
from holdfast.errors import EngineClosed, StoreOwned, StoreUnavailable, WrongEventLoop
from holdfast.store.sqlite.ownership import read_owner
from tests.eventually import eventually_blocking


@workflow
async def order(ctx: Context) -> str:
    return "done"


async def first_line(engine: Engine) -> Any:
    async for line in engine.export_executions():
        return line
    return None


CALLS: Final[Mapping[str, Callable[[Engine], Awaitable[Any]]]] = {
    "open": lambda engine: engine.open(),
    "recover": lambda engine: engine.recover(),
    "run_until_stopped": lambda engine: engine.run_until_stopped(),
    "shutdown": lambda engine: engine.shutdown(),
    "start": lambda engine: engine.start(order),
    "signal_with_start_workflow": lambda engine: engine.signal_with_start_workflow("w", order, signal_name="s"),
    "signal_workflow": lambda engine: engine.signal_workflow("w", "s"),
    "backlog": lambda engine: engine.backlog(),
    "cancel": lambda engine: engine.cancel("w"),
    "count": lambda engine: engine.count(),
    "terminate": lambda engine: engine.terminate("w"),
    "retry_blocked": lambda engine: engine.retry_blocked("w"),
    "pause": lambda engine: engine.pause("w"),
    "resume": lambda engine: engine.resume("w"),
    "pause_workflow": lambda engine: engine.pause_workflow("order"),
    "resume_workflow": lambda engine: engine.resume_workflow("order"),
    "pause_queue": lambda engine: engine.pause_queue("q"),
    "resume_queue": lambda engine: engine.resume_queue("q"),
    "pauses": lambda engine: engine.pauses(),
    "stale": lambda engine: engine.stale(1.0),
    "end_stale": lambda engine: engine.end_stale(1.0),
    "transaction": lambda engine: engine.transaction(lambda _connection, _work: None),
    "find_started": lambda engine: engine.find_started("w", "x"),
    "query_status": lambda engine: engine.query_status("w"),
    "query_result": lambda engine: engine.query_result("w"),
    "wait_for_result": lambda engine: engine.wait_for_result("w"),
    "history": lambda engine: engine.history("w"),
    "list": lambda engine: engine.list(),
    "nodes": lambda engine: engine.nodes(),
    "dead_letters": lambda engine: engine.dead_letters(),
    "requeue_dead_letters": lambda engine: engine.requeue_dead_letters([1]),
    "discard_dead_letters": lambda engine: engine.discard_dead_letters([1]),
    "query": lambda engine: engine.query("w", "q"),
    "update": lambda engine: engine.update("w", "u"),
    "update_with_start": lambda engine: engine.update_with_start("w", order, update_name="u"),
    "wait_for_change": lambda engine: engine.wait_for_change("w", 0),
    "send_message": lambda engine: engine.send_message("m", "k"),
    "send_event": lambda engine: engine.send_event("e"),
    "send_event_to": lambda engine: engine.send_event_to("w", "e"),
    "broadcast_signal": lambda engine: engine.broadcast_signal("b"),
    "pending_events": lambda engine: engine.pending_events("e"),
    "remove_pending_event": lambda engine: engine.remove_pending_event("e", "x"),
    "tasks": lambda engine: engine.tasks(),
    "task": lambda engine: engine.task("t"),
    "task_events": lambda engine: engine.task_events("t"),
    "claim_task": lambda engine: engine.claim_task("t", by="ann"),
    "release_task": lambda engine: engine.release_task("t", by="ann"),
    "assign_task": lambda engine: engine.assign_task("t", "ben", by="ann"),
    "complete_task": lambda engine: engine.complete_task("t", by="ann"),
    "cancel_task": lambda engine: engine.cancel_task("t", by="ann"),
    "comment_task": lambda engine: engine.comment_task("t", "text", by="ann"),
    "set_task_due": lambda engine: engine.set_task_due("t", None, by="ann"),
    "set_task_priority": lambda engine: engine.set_task_priority("t", 1, by="ann"),
    "create_schedule": lambda engine: engine.create_schedule("s", "R3/PT1M", order),
    "schedules": lambda engine: engine.schedules(),
    "describe_schedule": lambda engine: engine.describe_schedule("s"),
    "update_schedule": lambda engine: engine.update_schedule("s"),
    "pause_schedule": lambda engine: engine.pause_schedule("s"),
    "resume_schedule": lambda engine: engine.resume_schedule("s"),
    "run_schedule": lambda engine: engine.run_schedule("s"),
    "backfill_schedule": lambda engine: engine.backfill_schedule("s", datetime.now(UTC), datetime.now(UTC)),
    "delete_schedule": lambda engine: engine.delete_schedule("s"),
    "export_executions": first_line,
    "import_executions": lambda engine: engine.import_executions([]),
    "deploy": lambda engine: engine.deploy({"order.bpmn": b""}),
    "undeploy": lambda engine: engine.undeploy("order"),
    "enable": lambda engine: engine.enable("order"),
    "disable": lambda engine: engine.disable("order"),
    "definitions": lambda engine: engine.definitions(),
    "definition": lambda engine: engine.definition("order"),
    "definition_xml": lambda engine: engine.definition_xml("order"),
    "incidents": lambda engine: engine.incidents(),
    "count_incidents": lambda engine: engine.count_incidents(),
    "resolve_incident": lambda engine: engine.resolve_incident("w"),
    "variables": lambda engine: engine.variables("w"),
    "set_variables": lambda engine: engine.set_variables("w", {"a": 1}),
}
HANDLE_CALLS: Final[Mapping[str, Callable[[WorkflowHandle[Any]], Awaitable[Any]]]] = {
    "result": lambda handle: handle.result(),
    "status": lambda handle: handle.status(),
    "history": lambda handle: handle.history(),
    "signal": lambda handle: handle.signal("s"),
    "cancel": lambda handle: handle.cancel(),
    "terminate": lambda handle: handle.terminate(),
    "pause": lambda handle: handle.pause(),
    "resume": lambda handle: handle.resume(),
    "query": lambda handle: handle.query("q"),
    "update": lambda handle: handle.update("u"),
    "incidents": lambda handle: handle.incidents(),
    "resolve_incident": lambda handle: handle.resolve_incident(),
    "variables": lambda handle: handle.variables(),
    "set_variables": lambda handle: handle.set_variables({"a": 1}),
    "wait_for": lambda handle: handle.wait_for(lambda _info: True),
}


def list_coroutines(kind: type[Any]) -> set[str]:
    """The public methods of a class that are awaited or iterated."""
    return {
        name
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method))
    }


def test_every_method_that_is_awaited_is_tried_here() -> None:
    assert set(CALLS) == list_coroutines(Engine)
    assert set(HANDLE_CALLS) == list_coroutines(WorkflowHandle)


def run_elsewhere(call: Callable[[], Awaitable[Any]]) -> list[BaseException]:
    """What a call raises in another loop, in a thread of its own. It fails the test if that hangs."""
    raised: list[BaseException] = []

    async def run() -> None:
        await call()

    def work() -> None:
        try:
            asyncio.run(asyncio.wait_for(run(), 20))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(25)
    assert not thread.is_alive()
    return raised


async def test_every_method_says_so_in_another_loop() -> None:
    async with Engine("memory://", workflows=[order]) as engine:
        handle = await engine.start(order, workflow_id="w")
        calls = [lambda call=call: call(engine) for call in CALLS.values()]
        calls += [lambda call=call: call(handle) for call in HANDLE_CALLS.values()]
        raised = [await asyncio.to_thread(run_elsewhere, call) for call in calls]

        assert [[type(one) for one in errors] for errors in raised] == [[WrongEventLoop]] * len(calls)
        assert "asyncio.run_coroutine_threadsafe(engine.start(…), engine.loop)" in str(raised[0][0])
        assert await handle.result() == "done"


async def test_what_the_message_advises_works() -> None:
    async with Engine("memory://", workflows=[order]) as engine:

        def start() -> Any:
            return asyncio.run_coroutine_threadsafe(engine.start(order, workflow_id="w"), engine.loop).result(20)

        handle = await asyncio.to_thread(start)

        assert await handle.result() == "done"


def use_after_the_loop() -> weakref.ref[Engine]:
    """Open an engine in a loop that ends, and call it then. What is left of it."""
    engine = Engine("memory://", workflows=[order])
    with pytest.raises(EngineClosed, match=r"^Expected an engine that has been opened, but"):
        _ = engine.loop

    async def open_it() -> None:
        await engine.open()

    asyncio.run(open_it())
    for call in (CALLS["start"], CALLS["shutdown"], CALLS["open"]):
        raised = run_elsewhere(lambda call=call: call(engine))  # type: ignore[misc]
        assert [type(one) for one in raised] == [WrongEventLoop]
        assert "but that loop is closed" in str(raised[0])
    return weakref.ref(engine)


def test_engine_that_was_opened_in_a_loop_that_has_ended_says_so_and_python_warns_of_it() -> None:
    left = use_after_the_loop()

    with pytest.warns(ResourceWarning, match=r"^unclosed engine, node .*: it was not shut down before its event loop ended"):
        eventually_blocking(lambda: gc.collect() >= 0 and left() is None)


async def leave_open(engine: Engine) -> None:
    await engine.open()
    await engine.start(order, workflow_id="w")


async def go_on(url: str) -> Any:
    async with Engine(url, workflows=[order]) as engine:
        return await engine.handle("w").result()


def open_twice(url: str) -> weakref.ref[Engine]:
    """Open an engine in a loop that ends, keep it, and go on with another. What is left of the first."""
    kept = Engine(url, workflows=[order])
    asyncio.run(leave_open(kept))
    left = read_owner(kept.store.path)  # type: ignore[attr-defined]  # of a file
    assert asyncio.run(go_on(url)) == "done"
    assert left is not None
    assert left.endpoint is not None
    assert not Path(left.endpoint.socket).parent.exists()
    return weakref.ref(kept)


def test_a_file_of_an_engine_whose_loop_ended_without_a_shutdown_can_be_opened_again(tmp_path: Path) -> None:
    left = open_twice(f"sqlite:///{tmp_path / 'app.db'}")

    assert list(tmp_path.glob("app.db.owner*")) == []
    with pytest.warns(ResourceWarning, match="unclosed engine"):
        eventually_blocking(lambda: gc.collect() >= 0 and left() is None)


def test_a_file_is_given_back_by_an_engine_that_is_collected(tmp_path: Path) -> None:
    engine = Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[order])
    asyncio.run(leave_open(engine))
    left = weakref.ref(engine)

    del engine
    with pytest.warns(ResourceWarning, match="unclosed engine"):
        eventually_blocking(lambda: gc.collect() >= 0 and left() is None)

    assert list(tmp_path.glob("app.db.owner*")) == []


async def test_a_file_whose_engine_is_open_in_this_process_is_refused_with_the_remedy(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'app.db'}"
    async with Engine(url):
        with pytest.raises(StoreOwned, match=r"another store in this very process .* or shut it down first"):
            await Engine(url).open()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_that_drops_an_engine_leaves_the_file_to_its_parent(tmp_path: Path) -> None:
    program = """
import asyncio, gc, os, sys, warnings
from holdfast import Engine
from holdfast.store.sqlite.ownership import read_owner
from pathlib import Path

warnings.simplefilter("ignore")
engines = [Engine("sqlite:///app.db")]
async def main() -> None:
    await engines[0].open()
asyncio.run(main())
child = os.fork()
if not child:
    engines.clear()
    gc.collect()
    os._exit(0)
os.waitpid(child, 0)
owner = read_owner(Path("app.db"))
print(owner.pid == os.getpid(), Path(owner.endpoint.socket).exists())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "True"], done.stderr


def test_open_without_a_loop_says_so() -> None:
    coroutine = Engine("memory://", workflows=[order]).open()

    with pytest.raises(WrongEventLoop, match=r"^Expected to be awaited in an event loop, but none is running"):
        coroutine.send(None)


def test_engine_that_is_open_when_the_process_ends_is_logged() -> None:
    program = """
import asyncio, atexit
from holdfast import Engine

engine = Engine("memory://", node="a")

def close() -> None:
    try:
        asyncio.run(engine.shutdown())
    except Exception as error:
        print(type(error).__name__, error)

atexit.register(close)

async def main() -> None:
    await engine.open()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert "node a was not shut down before the process ended" in done.stderr
    assert "Traceback" not in done.stderr
    assert "WrongEventLoop" in done.stdout
    assert "not in atexit" in done.stdout


@pytest.mark.parametrize(
    ("address", "remedy"),
    [("127.0.0.1:1", "Check the host and the port"), ("nowhere.invalid", "Check the host name")],
)
async def test_server_out_of_reach_is_told_with_the_remedy_and_can_be_tried_again(address: str, remedy: str) -> None:
    engine = Engine(f"postgresql://a@{address}/x", workflows=[order])
    tasks = asyncio.all_tasks()
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=remedy) as raised:
            await engine.open()
        assert "tried again" not in str(raised.value)
        assert not engine.is_open
    assert asyncio.all_tasks() == tasks
    await engine.shutdown()
