"""An engine is used in the loop in which it was opened; in any other, its methods say so instead of hanging."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import pytest

from holdfast import Context, Engine, workflow
from holdfast.engine.handles import WorkflowHandle
from holdfast.errors import EngineClosed, WrongEventLoop


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
    "cancel": lambda engine: engine.cancel("w"),
    "terminate": lambda engine: engine.terminate("w"),
    "retry_blocked": lambda engine: engine.retry_blocked("w"),
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
    "export_executions": first_line,
    "import_executions": lambda engine: engine.import_executions([]),
}
HANDLE_CALLS: Final[Mapping[str, Callable[[WorkflowHandle[Any]], Awaitable[Any]]]] = {
    "result": lambda handle: handle.result(),
    "status": lambda handle: handle.status(),
    "history": lambda handle: handle.history(),
    "signal": lambda handle: handle.signal("s"),
    "cancel": lambda handle: handle.cancel(),
    "terminate": lambda handle: handle.terminate(),
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


def test_engine_that_was_opened_in_a_loop_that_has_ended_says_so() -> None:
    engine = Engine("memory://", workflows=[order])
    with pytest.raises(EngineClosed, match=r"^Expected an engine that has been opened, but"):
        _ = engine.loop

    async def open_it() -> None:
        await engine.open()

    asyncio.run(open_it())
    for call in (CALLS["start"], CALLS["shutdown"], CALLS["open"]):
        raised = run_elsewhere(lambda call=call: call(engine))  # type: ignore[misc]
        assert [type(one) for one in raised] == [WrongEventLoop]
