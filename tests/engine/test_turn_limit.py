"""The turn limit: code that does not come to rest is interrupted, and never anything else."""

from __future__ import annotations

import asyncio
import linecache
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pydantic
import pytest

from holdfast import Context, Status, WorkflowFailed, activity, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.engine.turns.turn_limit import TurnInterrupted, TurnLimit
from holdfast.errors import TurnTooLong
from holdfast.testing import TestEngine
from tests.engine.conftest import OpenEngine

LIMIT = 0.1
"""Seconds."""


def loop_for_ever(*_ignored: Any) -> Any:
    while True:  # stuck
        pass  # stuck


# --- the handshake ---


class Hunter:
    """Interrupts whatever it finds under way, at once and again and again."""

    def __init__(self, limit: TurnLimit) -> None:
        self._limit = limit
        self._is_over = False
        self._thread = threading.Thread(target=self._hunt)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_exception: object) -> None:
        self._is_over = True
        self._thread.join()

    def _hunt(self) -> None:
        while not self._is_over:
            token = self._limit.armed
            if token is not None:
                self._limit.interrupt(token)


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads take turns every few microseconds, so that they meet in every way."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def compute(steps: int) -> str:
    for _ in range(steps):
        pass
    return "computed"


def clean_up(steps: int) -> str:
    try:
        return compute(steps)
    finally:
        compute(steps)


def swallow(steps: int) -> str:
    for _ in range(5):
        try:
            compute(steps)
        except BaseException:
            continue
    return "swallowed"


def close_generator(steps: int) -> str:
    def generate() -> Iterator[None]:
        try:
            yield
        finally:
            compute(steps)

    generator = generate()
    next(generator)
    generator.close()  # type: ignore[attr-defined]  # it is a generator
    return "closed"


def raise_error(steps: int) -> str:
    compute(steps)
    raise ValueError("own")


def call_c(steps: int) -> str:
    return str(sum(range(steps)))


DEEDS: list[Callable[[int], str]] = [compute, clean_up, swallow, close_generator, raise_error, call_c]


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
def test_interruption_never_arrives_outside_of_the_call_that_it_is_meant_for(deed: Callable[[int], str]) -> None:
    limit, random = TurnLimit(LIMIT), Random(deed.__name__)
    limit.open()
    ended = interrupted = outside = 0

    with Hunter(limit):
        give_up = time.monotonic() + 30
        while (ended < 50 or interrupted < 50 or ended + interrupted < 1_000) and time.monotonic() < give_up:
            try:
                limit.call("flow", "id", deed, random.choice([0, 10, 1_000, 10_000]))
                ended += 1
            except ValueError:
                ended += 1
            except TurnTooLong:
                interrupted += 1
            outside += len([step for step in range(random.randrange(100)) if step % 7])
    compute(10_000)
    limit.close()

    assert ended >= 50
    assert interrupted >= 50
    assert outside


def test_interruption_of_a_call_that_has_ended_does_nothing() -> None:
    limit = TurnLimit(LIMIT)
    limit.open()
    seen: list[Any] = []
    limit.call("flow", "id", lambda _: seen.append(limit.armed), None)

    limit.interrupt(seen[0])
    compute(1_000)

    assert limit.call("flow", "id", compute, 1_000) == "computed"
    limit.close()


def test_interruption_that_was_taken_back_leaves_nothing_pending_in_the_interpreter() -> None:
    """CPython 3.11 hangs under a profiler as long as it looks for an interruption that is not there."""
    script = """
import sys
from holdfast.engine.turns.turn_limit import TurnLimit
from holdfast.errors import TurnTooLong

limit = TurnLimit(1.0)
limit.open()

def swallow(_):
    try:
        limit.interrupt(limit.armed)
        while True:
            pass
    except KeyboardInterrupt:
        return "swallowed"

try:
    limit.call("flow", "id", swallow, None)
except TurnTooLong:
    pass
limit.close()
sys.setprofile(lambda *_: None)
(lambda: None)()
sys.setprofile(None)
print("went on")
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert ran.stdout == "went on\n"


def test_interruption_that_code_kept_and_raises_later_is_the_end_of_that_turn_only() -> None:
    limit = TurnLimit(LIMIT)

    def raise_again(_: object) -> None:
        raise TurnInterrupted

    with pytest.raises(TurnTooLong):
        limit.call("flow", "id", raise_again, None)
    assert limit.call("flow", "id", compute, 1) == "computed"


# --- in an engine ---


@activity
async def compute_in_loop() -> str:
    until = time.monotonic() + 4 * LIMIT
    while time.monotonic() < until:
        pass
    return "computed"


@activity
def compute_in_thread() -> str:
    until = time.monotonic() + 4 * LIMIT
    while time.monotonic() < until:
        pass
    return "computed"


@activity
async def take(value: Any) -> None: ...


@workflow
async def bystander(ctx: Context) -> str:
    await ctx.wait_for_signal("go")
    return "fine"


class Looping(pydantic.BaseModel):
    """Cannot be encoded."""

    @pydantic.model_serializer
    def serialize(self) -> Any:
        return loop_for_ever()


@dataclass
class LoopingSignal:
    """Cannot be decoded."""

    name: str = ""

    def __post_init__(self) -> None:
        loop_for_ever()


class LoopingEnd:
    """Cannot be freed."""

    def __del__(self) -> None:
        loop_for_ever()


class LoopingError(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        loop_for_ever()
        return ""


@dataclass
class RaisingSignal:
    """Cannot be decoded, and why cannot be told."""

    name: str = ""

    def __post_init__(self) -> None:
        raise LoopingError


async def in_plain_code(ctx: Context) -> Any:
    loop_for_ever()


async def in_every_task(ctx: Context) -> Any:
    async def loop() -> None:
        await asyncio.sleep(0)
        loop_for_ever()

    await asyncio.gather(*(loop() for _ in range(20)), return_exceptions=True)


async def in_finally(ctx: Context) -> Any:
    try:
        raise ValueError("first")
    finally:
        loop_for_ever()


async def once_swallowed(ctx: Context) -> Any:
    try:
        loop_for_ever()
    except BaseException:
        return "swallowed"


async def swallowed_some_times(ctx: Context) -> Any:
    for _ in range(5):
        try:
            loop_for_ever()
        except BaseException:
            continue


async def in_side_effect(ctx: Context) -> Any:
    ctx.side_effect(loop_for_ever)


async def in_argument(ctx: Context) -> Any:
    await ctx.run(take, Looping())


async def in_result(ctx: Context) -> Any:
    return Looping()


async def in_signal(ctx: Context) -> Any:
    await ctx.wait_for_signal("more", LoopingSignal)


async def in_error(ctx: Context) -> Any:
    raise LoopingError


async def in_escaped_error(ctx: Context) -> Any:
    await ctx.wait_for_signal("more", RaisingSignal)


async def in_generator(ctx: Context) -> Any:
    def generate() -> Iterator[None]:
        try:
            yield
        finally:
            loop_for_ever()

    for _ in generate():
        break


async def in_async_generator(ctx: Context) -> Any:
    async def generate() -> AsyncIterator[None]:
        try:
            yield
        finally:
            loop_for_ever()

    async for _ in generate():
        break
    await ctx.sleep(0)


async def in_finalizer(ctx: Context) -> Any:
    thing = LoopingEnd()
    del thing
    return "freed"


async def in_log(ctx: Context) -> Any:
    while True:  # stuck
        ctx.logger.info("again")  # stuck


WAYS: list[Callable[[Context], Any]] = [
    in_plain_code,
    in_every_task,
    in_finally,
    once_swallowed,
    swallowed_some_times,
    in_side_effect,
    in_argument,
    in_result,
    in_signal,
    in_error,
    in_escaped_error,
    in_generator,
    in_async_generator,
    in_finalizer,
    in_log,
]


def assert_names_place(message: str | None) -> None:
    found = re.search(r"still ran at (.+):(\d+)\. ", message or "")
    assert found, message
    assert "# stuck" in linecache.getline(found[1], int(found[2])), message


@pytest.fixture
async def open_here() -> AsyncIterator[Callable[..., Any]]:
    """Opens engines in memory with a short limit."""
    engines: list[TestEngine] = []

    async def open_here(*definitions: Workflow[..., Any] | Activity[..., Any], **options: Any) -> TestEngine:
        engine = TestEngine(
            workflows=[one for one in definitions if isinstance(one, Workflow)],
            activities=[one for one in definitions if isinstance(one, Activity)],
            turn_limit=LIMIT,
            **options,
        )
        engines.append(engine)
        await engine.open()
        return engine

    yield open_here
    for engine in engines:
        await engine.shutdown()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_code_that_never_rests_is_blocked_with_its_place(
    open_here: Callable[..., Any], way: Callable[[Context], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # what is raised in a finalizer ends there

    @workflow(name="stuck")
    async def stuck(ctx: Context) -> Any:
        await ctx.wait_for_signal("go")
        return await way(ctx)

    engine = await open_here(stuck, bystander, take)
    handle, other = await engine.start(stuck), await engine.start(bystander)
    before = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
    await handle.signal("go")
    if way in (in_signal, in_escaped_error):
        await handle.signal("more", {"name": "x"})
    await other.signal("go")

    assert await other.result() == "fine"
    info = await handle.status()
    assert info.status is Status.BLOCKED
    assert str(info.last_error).startswith(
        "TurnTooLong: Expected workflow 'stuck' to come to rest within 0.1 s, but its code still ran"
    )
    assert_names_place(str(info.last_error))
    assert (asyncio._get_running_loop(), sys.get_asyncgen_hooks()) == before


async def test_D2_result_that_cannot_be_freed_holds_up_others_for_the_limit_alone(
    open_here: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # what is raised in a finalizer ends there

    @dataclass
    class Result:
        number: int

        def __del__(self) -> None:
            loop_for_ever()

    @workflow
    async def returning(ctx: Context) -> Any:
        return Result(1)

    engine = await open_here(returning, bystander)
    other = await engine.start(bystander)

    assert await (await engine.start(returning)).result() == {"number": 1}
    await other.signal("go")
    assert await other.result() == "fine"


async def test_others_go_on_in_the_batch_of_a_turn_that_is_interrupted(open_engine: OpenEngine) -> None:
    @workflow
    async def stuck(ctx: Context) -> None:
        await ctx.wait_for_signal("go")
        loop_for_ever()

    engine = await open_engine(stuck, bystander, turn_limit=LIMIT)
    handle, others = await engine.start(stuck), [await engine.start(bystander) for _ in range(5)]
    await asyncio.gather(handle.signal("go"), *(other.signal("go") for other in others))

    assert [await other.result() for other in others] == ["fine"] * 5
    info = await handle.status()
    assert info.status is Status.BLOCKED
    assert_names_place(str(info.last_error))


async def test_first_turn_that_never_rests_fails(open_here: Callable[..., Any]) -> None:
    @workflow
    async def stuck(ctx: Context) -> None:
        loop_for_ever()

    engine = await open_here(stuck, bystander)
    handle = await engine.start(stuck)

    with pytest.raises(WorkflowFailed, match=r"but it raised TurnTooLong: Expected workflow 'stuck' to come to rest within"):
        await handle.result()


@pytest.mark.parametrize("replay_ahead", [3, 1_000], ids=["before the lock", "under the lock"])
async def test_replay_that_never_rests_is_blocked_and_goes_on_after_a_fix(
    open_here: Callable[..., Any], replay_ahead: int
) -> None:
    is_stuck = False

    @workflow
    async def counting(ctx: Context) -> int:
        for count in range(10):
            await ctx.wait_for_signal("go")
            if is_stuck and count == 4:
                loop_for_ever()
        return 10

    engine = await open_here(counting, bystander, replay_ahead=replay_ahead)
    handle = await engine.start(counting, workflow_id="counting")
    await engine.start(bystander, workflow_id="other")
    for _ in range(9):
        await handle.signal("go")
    await engine.restart()
    is_stuck = True
    await engine.signal_workflow("counting", "go")
    await engine.signal_workflow("other", "go")

    assert await engine.handle("other").result() == "fine"
    await engine.settle()
    info = await engine.query_status("counting")
    assert info.status is Status.BLOCKED
    assert_names_place(str(info.last_error))
    is_stuck = False
    await engine.retry_blocked("counting")
    assert await engine.handle("counting").result() == 10


async def test_program_that_never_ends_its_clean_up_is_unloaded_all_the_same(open_here: Callable[..., Any]) -> None:
    @workflow
    async def lingering(ctx: Context) -> None:
        try:
            await ctx.wait_for_signal("never")
        finally:
            loop_for_ever()

    engine = await open_here(lingering, bystander, max_live_programs=1)
    await engine.start(lingering)
    other = await engine.start(bystander)
    await other.signal("go")

    assert await other.result() == "fine"


async def test_activity_that_computes_for_long_is_left_alone(open_here: Callable[..., Any]) -> None:
    @workflow
    async def patient(ctx: Context) -> list[str]:
        return list(await asyncio.gather(ctx.run(compute_in_loop), ctx.run(compute_in_thread)))

    engine = await open_here(patient, compute_in_loop, compute_in_thread)

    assert await (await engine.start(patient)).result() == ["computed", "computed"]


async def test_many_turns_of_about_the_limit_end_or_are_blocked_and_nothing_else(open_here: Callable[..., Any]) -> None:
    lengths = Random(1)

    @workflow
    async def busy(ctx: Context) -> str:
        await ctx.wait_for_signal("go")
        until = threading.Event()
        until.wait(lengths.uniform(0.8, 1.2) * LIMIT)
        for _ in range(lengths.randrange(3_000_000)):
            pass
        return "done"

    engine = await open_here(busy, bystander)
    handles = [await engine.start(busy) for _ in range(20)]
    for handle in handles:
        await handle.signal("go")
    other = await engine.start(bystander)
    await other.signal("go")

    assert await other.result() == "fine"
    ends = {(await handle.status()).status for handle in handles}
    assert ends <= {Status.COMPLETED, Status.BLOCKED}
