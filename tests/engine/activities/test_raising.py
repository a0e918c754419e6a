"""A1 and A2: whatever an activity raises ends its attempt, so that its workflow hears of it and others get its slot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import ActivityError, ActivityFailed, Context, Retry, activity, activity_info, workflow
from holdfast.activities.definitions import Activity, TransactionActivity
from holdfast.core import events
from holdfast.core.failures import Failure
from holdfast.engine.activities import runner
from holdfast.engine.engine import Engine
from holdfast.errors import AlreadyDone, StoreUnavailable
from holdfast.testing import TestEngine
from tests.engine.activities.process_activities import raise_odd
from tests.engine.conftest import OpenEngine
from tests.engine.support.held_activities import Door
from tests.engine.support.histories import find_events
from tests.engine.support.user_tables import KINDS, Place
from tests.eventually import eventually

TWICE: Final = Retry(max_attempts=2, initial=0.05)


class Wordless(Exception):
    def __str__(self) -> str:
        raise asyncio.CancelledError("no words")


class Leaving(Exception):
    def __str__(self) -> str:
        raise SystemExit(4)


class Keyed(Exception):
    """Looks up each name that it does not have, as containers of settings do."""

    def __getattr__(self, name: str) -> Any:
        return dict[str, Any]()[name]


class Numbered(type):
    __name__ = property(lambda _cls: 5)


class Misnamed(Exception, metaclass=Numbered):
    """The class has a number for a name."""


class Classless(Exception):
    @property  # type: ignore[misc]  # nobody can set it
    def __class__(self) -> Any:
        raise GeneratorExit


class LastOne(StopIteration):
    """Other than StopIteration itself a future holds it, and an `await` would end with its value."""


RAISED: Final[Mapping[str, tuple[Callable[[], BaseException], str]]] = {
    "stop": (StopIteration, "RuntimeError"),
    "last one": (lambda: LastOne("a result?"), "RuntimeError"),
    "stop async": (StopAsyncIteration, "StopAsyncIteration"),
    "generator exit": (GeneratorExit, "GeneratorExit"),
    "exit": (lambda: SystemExit(3), "SystemExit"),
    "invalid state": (asyncio.InvalidStateError, "InvalidStateError"),
    "wordless": (Wordless, "Wordless"),
    "leaving": (Leaving, "Leaving"),
    "keyed": (Keyed, "Keyed"),
    "misnamed": (Misnamed, "Misnamed"),
}


RAISED_BY_FUNCTIONS: Final = {**RAISED, "interrupt": (KeyboardInterrupt, "KeyboardInterrupt")}


def make(how: str) -> BaseException:
    return RAISED_BY_FUNCTIONS[how][0]()


@activity(retry=TWICE)
async def raise_in_loop(how: str) -> None:
    raise make(how)


@activity(retry=TWICE)
def raise_in_thread(how: str) -> None:
    raise make(how)


@activity(retry=TWICE)
async def await_what_a_thread_raises(how: str) -> None:
    """Other than what the function raises itself, asyncio throws this into the coroutines."""
    await asyncio.get_running_loop().run_in_executor(None, raise_in_thread, how)


@activity
async def succeed() -> str:
    return "done"


@activity
def succeed_in_thread() -> str:
    return "done"


async def find_ends(
    open_engine: Callable[..., Any], work: Activity[..., Any], ways: Sequence[Any], **options: Any
) -> dict[str, list[Any]]:
    """How an activity ends for each argument. Another one runs after it, in the only slot that there is."""

    @workflow
    async def run_all(ctx: Context) -> list[list[Any]]:
        async def run(how: Any) -> list[Any]:
            try:
                return [await (ctx.transaction(work, how) if isinstance(work, TransactionActivity) else ctx.run(work, how))]
            except ActivityError as error:
                return [type(error).__name__, error.type, error.attempt]

        return [
            *await asyncio.gather(*(run(how) for how in ways)),
            [await ctx.run(succeed), await ctx.run(succeed_in_thread)],
        ]

    one_slot = {"max_activities": 1, "max_threads": 1, "max_processes": 1}
    engine: Engine = await open_engine(run_all, work, succeed, succeed_in_thread, **one_slot | options)
    handle = await engine.start(run_all)

    *ends, last = await asyncio.wait_for(handle.result(), 30)
    assert last == ["done", "done"]
    return dict(zip(map(str, ways), ends, strict=True))


def failed(name: str, attempt: int = 2) -> list[Any]:
    return [ActivityFailed.__name__, name, attempt]


# --- what the function raises ---


@pytest.mark.parametrize("work", [raise_in_loop, raise_in_thread], ids=lambda one: one.name)
async def test_A1_whatever_the_function_raises_fails_it_after_its_attempts(
    open_engine: OpenEngine, work: Activity[..., Any]
) -> None:
    ends = await find_ends(open_engine, work, list(RAISED_BY_FUNCTIONS), auto_advance=True)

    assert ends == {how: failed(name) for how, (_, name) in RAISED_BY_FUNCTIONS.items()}


async def test_A1_generator_exit_that_a_future_holds_fails_the_activity(open_engine: OpenEngine) -> None:
    ends = await find_ends(open_engine, await_what_a_thread_raises, ["generator exit", "wordless"], auto_advance=True)

    assert ends == {"generator exit": failed("GeneratorExit"), "wordless": failed("Wordless")}


@pytest.mark.parametrize("executor", ["loop", "thread"])
async def test_A1_exception_that_does_not_tell_its_class_fails_the_activity(open_engine: OpenEngine, executor: str) -> None:
    @activity(retry=TWICE)
    async def hide_in_loop(_how: str) -> None:
        raise Classless

    @activity(retry=TWICE)
    def hide_in_thread(_how: str) -> None:
        raise Classless

    work = hide_in_loop if executor == "loop" else hide_in_thread
    ends = await find_ends(open_engine, work, ["classless"], auto_advance=True)

    assert ends == {"classless": failed("Classless")}


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A1_whatever_a_function_raises_in_a_process_fails_it(open_engine: OpenEngine) -> None:
    ends = await find_ends(
        open_engine, raise_odd, ["stop", "generator exit", "cancel", "interrupt", "wordless"], auto_advance=True
    )

    assert ends == {
        "stop": failed("StopIteration"),
        "generator exit": failed("GeneratorExit"),
        "cancel": failed("CancelledError"),
        "interrupt": failed("KeyboardInterrupt"),
        "wordless": failed("Wordless"),
    }


async def test_A1_stop_iteration_in_a_thread_is_told_with_its_place(open_engine: OpenEngine) -> None:
    @activity(retry=Retry(max_attempts=1))
    def take_first(items: list[str]) -> str:
        return next(iter(items))

    @workflow
    async def order(ctx: Context) -> str:
        try:
            return await ctx.run(take_first, [])
        except ActivityFailed as error:
            return str(error)

    engine = await open_engine(order, take_first)
    handle = await engine.start(order)
    said = await asyncio.wait_for(handle.result(), 30)
    [ended] = await find_events(engine, handle.workflow_id, events.ActivityFailed)

    assert said.endswith("it raised RuntimeError: activity 'take_first' raised StopIteration")
    assert ended.failure.trace.endswith("take_first")


@activity(retry=TWICE)
async def cancel_in_loop(how: str) -> None:
    match how:
        case "raise":
            raise asyncio.CancelledError
        case "await what was cancelled":
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future
        case "cancel itself":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(3600)
        case "time out":
            async with asyncio.timeout(0):
                await asyncio.sleep(3600)


@activity(retry=TWICE)
def cancel_in_thread(_how: str) -> None:
    raise asyncio.CancelledError


async def test_A2_cancellation_that_nobody_asked_for_is_a_failure(open_engine: OpenEngine) -> None:
    ways = ["raise", "await what was cancelled", "cancel itself", "time out"]
    ends = await find_ends(open_engine, cancel_in_loop, ways, auto_advance=True)
    in_thread = await find_ends(open_engine, cancel_in_thread, ["raise"], store="memory://", auto_advance=True)

    assert ends == dict.fromkeys(ways[:3], failed("CancelledError")) | {"time out": failed("TimeoutError")}
    assert in_thread == {"raise": failed("CancelledError")}


async def test_A2_failure_by_cancellation_says_that_nobody_asked_for_it(open_engine: OpenEngine) -> None:
    @workflow
    async def order(ctx: Context) -> str:
        try:
            await ctx.run(cancel_in_loop.with_options(retry=Retry(max_attempts=1)), "raise")
        except ActivityFailed as error:
            return str(error)
        return ""

    engine = await open_engine(order, cancel_in_loop)

    assert "CancelledError: nobody asked to cancel the activity" in await (await engine.start(order)).result()


# --- what types raise ---


@dataclass
class Trap:
    """Raises when it is decoded."""

    how: str

    def __post_init__(self) -> None:
        if self.how in RAISED:
            raise make(self.how)


class Dump:
    """Raises when it is encoded. In the way of pydantic's models."""

    def __init__(self, how: str) -> None:
        self.how = how

    @classmethod
    def model_validate(cls, value: str) -> Dump:
        return cls(value)

    def model_dump(self, mode: str) -> str:
        raise make(self.how)


@pytest.mark.parametrize("executor", ["loop", "thread"])
async def test_A1_result_whose_encoding_raises_anything_fails_it_at_once(open_engine: OpenEngine, executor: str) -> None:
    @activity(retry=TWICE)
    async def dump_in_loop(how: str) -> Any:
        return Dump(how)

    @activity(retry=TWICE)
    def dump_in_thread(how: str) -> Any:
        return Dump(how)

    ways = list(RAISED)
    ends = await find_ends(open_engine, dump_in_loop if executor == "loop" else dump_in_thread, ways, auto_advance=True)

    assert ends == {how: failed("EncodingError", 1) for how in ways}


@pytest.mark.parametrize("executor", ["loop", "thread"])
async def test_A1_argument_whose_decoding_raises_anything_fails_it_at_once(open_engine: OpenEngine, executor: str) -> None:
    @activity(retry=TWICE)
    async def take_in_loop(trap: Trap) -> None: ...

    @activity(retry=TWICE)
    def take_in_thread(trap: Trap) -> None: ...

    take = take_in_loop if executor == "loop" else take_in_thread

    @workflow
    async def run_all(ctx: Context) -> list[list[Any]]:
        ends = []
        for how in RAISED:
            try:
                await ctx.run(take.name, {"how": how})  # by its name, so that nothing is checked here
            except ActivityError as error:
                ends.append([type(error).__name__, error.type, error.attempt])
        return ends

    engine = await open_engine(run_all, take, auto_advance=True)
    handle = await engine.start(run_all)

    assert await asyncio.wait_for(handle.result(), 30) == [failed("InvalidArguments", 1)] * len(RAISED)


# --- transactions ---


@pytest.fixture(params=KINDS)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    kind = request.param
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else f"sqlite:///{tmp_path / 'app.db'}"
    place = Place(kind, url)
    yield place
    await place.close()


async def test_A1_whatever_a_transaction_raises_fails_it_after_its_attempts(place: Place) -> None:
    def fail(_connection: Any, how: str) -> Any:
        raise make(how)

    ends = await find_ends(place.open, place.transaction(fail, retry=TWICE), list(RAISED_BY_FUNCTIONS))

    assert ends == {how: failed(name) for how, (_, name) in RAISED_BY_FUNCTIONS.items()}


async def test_A1_result_of_a_transaction_whose_encoding_raises_anything_fails_it_at_once(place: Place) -> None:
    ends = await find_ends(place.open, place.transaction(lambda _connection, how: Dump(how), retry=TWICE), list(RAISED))

    assert ends == {how: failed("EncodingError", 1) for how in RAISED}


async def test_A2_cancellation_that_a_transaction_raises_is_a_failure(place: Place) -> None:
    def cancel(_connection: Any, _how: str) -> Any:
        raise asyncio.CancelledError

    ends = await find_ends(place.open, place.transaction(cancel, retry=TWICE), ["cancel"])

    assert ends == {"cancel": failed("CancelledError")}


@pytest.mark.parametrize("kind", [AlreadyDone, StoreUnavailable])
async def test_A1_error_of_the_store_that_a_transaction_raises_itself_fails_it(
    place: Place, kind: type[AlreadyDone | StoreUnavailable]
) -> None:
    class Refusing:
        """Its result speaks to another store when it is encoded."""

        @classmethod
        def model_validate(cls, _value: Any) -> Refusing:
            return cls()

        def model_dump(self, mode: str) -> Any:
            raise kind("another store's")

    def fail(_connection: Any, how: str) -> Any:
        if how == "function":
            raise kind("another store's")
        return Refusing()

    ends = await find_ends(place.open, place.transaction(fail, retry=TWICE), ["function", "result"])

    assert ends == {"function": failed(kind.__name__), "result": failed(kind.__name__)}


# --- what happens around it ---


async def test_A2_attempt_whose_coroutine_is_closed_from_outside_sends_nothing(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(retry=Retry(max_attempts=1), max_concurrent=1)
    async def slow(name: str) -> int:
        try:
            await door.wait(name)
        finally:
            if (name, activity_info().attempt) == ("a", 1):
                raise ValueError("even if it raises while it is closed")
        return activity_info().attempt

    @workflow
    async def order(ctx: Context) -> int:
        attempt, _ = await asyncio.gather(ctx.run(slow, "a"), ctx.run(slow, "b"))
        return attempt

    engine = await open_engine(order, slow)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: door.came)
    [attempt] = engine._runtime.runner.under_way
    coroutine = attempt.get_coro()
    assert coroutine is not None
    coroutine.close()  # as when its loop was closed, and it is collected
    door.open()
    with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
        await attempt
    await engine.settle()

    assert door.came == ["a"], "nothing starts in its place"
    assert await find_events(engine, "order", events.ActivityFailed) == []
    await engine.restart()
    assert await engine.handle("order").result() == 2


async def test_A1_attempt_that_is_cancelled_before_it_begins_frees_its_slot(open_engine: OpenEngine) -> None:
    @workflow
    async def change_its_mind(ctx: Context) -> str:
        future = ctx.run(raise_in_loop, "exit")
        await ctx.wait_for_signal("go")
        future.cancel()
        return await ctx.run(succeed)

    async def run(engine: TestEngine) -> str:
        handle = await engine.start(change_its_mind)
        await handle.signal("go")
        return await asyncio.wait_for(handle.result(), 30)

    engine = await open_engine(change_its_mind, raise_in_loop, succeed, max_activities=1)

    assert await asyncio.gather(*(run(engine) for _ in range(10))) == ["done"] * 10


@pytest.fixture
def broken_log() -> Iterator[None]:
    """A handler of the log that raises."""

    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("no space left on device")

    log, handler = logging.getLogger("holdfast.activities"), Broken()
    log.addHandler(handler)
    yield
    log.removeHandler(handler)


@pytest.mark.usefixtures("broken_log")
async def test_A2_handler_of_the_log_that_raises_does_not_keep_an_attempt_from_its_end(open_engine: OpenEngine) -> None:
    ends = await find_ends(open_engine, raise_in_loop, ["exit"], auto_advance=True)

    assert ends == {"exit": failed("SystemExit")}


async def test_A2_attempt_ends_though_what_it_raised_cannot_be_described(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_out_of_memory(_error: BaseException) -> Failure:
        raise MemoryError

    monkeypatch.setattr(runner, "describe_exception", run_out_of_memory)
    ends = await find_ends(open_engine, raise_in_loop, ["exit"], auto_advance=True)

    assert ends == {"exit": failed("Unknown")}
