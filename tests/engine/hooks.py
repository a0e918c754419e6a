"""The inside of an engine, as tests need it: the only module of the tests that knows its private parts.

Whoever changes the engine changes this file, and the tests stay as they are. Functions that look come first, then those
that act.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from collections.abc import Set as AbstractSet
from typing import Any

import pytest

from holdfast.core.envelopes import ActivityBegan, Signal
from holdfast.core.execution import Execution
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Instant
from holdfast.engine.engine import Engine
from holdfast.engine.quarantine import Quarantine
from holdfast.engine.requests import Answer, Request
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.errors import EngineClosed
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import ActivityRow, ExecutionRow
from holdfast.testing import TestEngine

# --- looking ---


def peers_of(engine: Engine) -> Collection[str]:
    """The names of the other nodes that the engine knows to be alive."""
    return engine._runtime.membership.peers.names


def quarantine_of(engine: Engine) -> Quarantine:
    """Which executions the engine tries apart from others."""
    return engine._runtime.quarantine


def process_of(engine: Engine) -> str:
    """The token by which the engine's process is known to others."""
    return engine._runtime._process


def has_joined(engine: Engine) -> bool:
    """Whether the engine has entered its name in the store while it opens."""
    return engine._runtime.membership._has_joined


def is_replaced(engine: Engine) -> bool:
    """Whether the engine has heard that another process works under its name."""
    return engine._runtime._replaced_by is not None


def has_given_way(engine: Engine) -> bool:
    """Whether an engine that was replaced has shut itself down completely."""
    return engine._forced_shutdown is not None and engine._forced_shutdown.done()


def is_idle(engine: Engine) -> bool:
    """Whether no batch is under way or asked for, and nothing runs in the background."""
    return engine._runtime.pump.is_idle and not engine._runtime.background


def is_backing_off(engine: Engine) -> bool:
    """Whether the last batch failed, so that the engine waits before it tries again."""
    return engine._runtime.pump._runner._failures > 0


def skipped_by(engine: Engine) -> AbstractSet[str]:
    """The executions that the engine leaves out of its claims, since they cannot go on here."""
    return engine._runtime.pump.skipped


def skipped_ids_of(engine: Engine) -> AbstractSet[tuple[str, str]]:
    """The workflow ids, with their orgs, of which the engine leaves alone what is addressed by them."""
    return engine._runtime.pump._runner.skip_workflow_ids


def left_routes_of(engine: Engine) -> AbstractSet[str]:
    """The routes whose offered activities the engine leaves to nodes of a newer version."""
    return engine._runtime.offers._left_routes.keys()


def next_due_of(engine: Engine) -> Instant | None:
    """When the engine will wake for a timer, if there is one for it."""
    return engine._runtime.pump.next_due


def count_programs(engine: Engine) -> int:
    """How many programs of executions the engine has in memory."""
    return len(engine._runtime.cache)


def count_activities(engine: Engine) -> int:
    """How many attempts of activities are under way in the engine, or wait there for a place."""
    return engine._runtime.runner.running_count


def count_removed(engine: Engine) -> int:
    """How many executions the engine's retention has removed."""
    retention = engine._runtime.retention
    return 0 if retention is None else retention.removed


def count_removed_letters(engine: Engine) -> int:
    """How many dead letters the engine's retention has removed."""
    retention = engine._runtime.dead_letter_retention
    return 0 if retention is None else retention.removed


def awaited_by(engine: Engine) -> Collection[Any]:
    """The executions whose results somebody awaits on this engine, and that may end on another node."""
    return engine._runtime.result_waiters.watched


async def find_row(engine: Engine, target: str) -> ExecutionRow:
    """The row of an execution, by workflow id or execution id. Raises ExecutionNotFound."""
    return await engine._delivery.find_or_raise(DEFAULT_ORG, target, "find")


async def has_row(engine: Engine, target: str) -> bool:
    """Whether an execution is stored under a workflow id or execution id."""
    return await engine._delivery.find(DEFAULT_ORG, target) is not None


def listener_of(engine: Engine) -> int:
    """The server's process that serves the connection by which the engine hears of wake-ups."""
    store = engine.store
    assert isinstance(store, PostgresStore)
    pid: int = store._wakeups._connection.get_server_pid()  # type: ignore[union-attr]  # it is connected
    return pid


# --- acting ---


def look_for_work(engine: Engine) -> None:
    """Let the engine look into the store, as after a wake-up."""
    engine._runtime.pump.look()


def unskip(engine: Engine) -> None:
    """Let the engine try again what it leaves out of its claims, as it does from time to time."""
    engine._runtime.pump.unskip()


def submit(engine: Engine, request: Request) -> None:
    """Put a request into the engine's next batch, as its own parts do."""
    engine._runtime.pump.submit(request)


def make_signal(engine: Engine, name: str, value: Any) -> Signal:
    """A signal as the engine's API makes it, without sending it."""
    return engine._delivery.make_signal(name, value)


def begin_offer(engine: Engine, row: ActivityRow) -> None:
    """Let the engine begin an activity that it has taken from the store."""
    engine._runtime.offers._begin(row)


def keep_all_activities(engine: Engine) -> Callable[[], None]:
    """Let the engine keep its activities though it has no place for them, as when several batches gave one away.

    What is returned ends that.
    """
    runner, offers = engine._runtime.pump._runner, engine._runtime.offers
    runner._make_may_keep = lambda: None

    def offer_again() -> None:
        runner._make_may_keep = offers.make_may_keep

    return offer_again


def watch_heartbeats(engine: Engine, monkeypatch: pytest.MonkeyPatch, listen: Callable[[], None]) -> None:
    """Call `listen` before each heartbeat that the engine's loop hears of."""
    offers = engine._runtime.offers
    on_heartbeat = offers.on_heartbeat

    def listen_first(*pulse: Any) -> None:
        listen()
        on_heartbeat(*pulse)

    monkeypatch.setattr(offers, "on_heartbeat", listen_first)


def prolong_recovery(engine: Engine, monkeypatch: pytest.MonkeyPatch, wait: Callable[[], Awaitable[Any]]) -> None:
    """Let the engine await `wait()` after its recovery, while it is still opening."""
    recovery = engine._runtime.recovery
    recover = recovery.recover

    async def recover_slowly(*gone: Any) -> Any:
        report = await recover(*gone)
        await wait()
        return report

    monkeypatch.setattr(recovery, "recover", recover_slowly)


def drop_program(engine: Engine, execution_id: str) -> None:
    """Remove the program of an execution from the engine's memory."""
    engine._runtime.cache.drop(execution_id)


async def replay_early(engine: Engine, execution_id: str) -> LiveExecution | None:
    """Replay an execution as before it is locked, without keeping the program."""
    prefetch = engine._runtime.pump.prefetch
    return await prefetch._with_slot(lambda slot: prefetch._replay(DEFAULT_ORG, execution_id, slot, most_lost=1))


async def keep_replayed(engine: Engine, live: LiveExecution) -> None:
    """Let the engine keep a program that was replayed early, as at the end of such a replay."""
    prefetch = engine._runtime.pump.prefetch
    await prefetch._keep(live, prefetch._epoch)


def note_replayed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that the engine makes from now on to replay histories early."""
    prefetch = engine._runtime.pump.prefetch
    make, made = prefetch._make_program, []

    def make_and_note(execution: Execution) -> Any:
        made.append(make(execution))
        return made[-1]

    monkeypatch.setattr(prefetch, "_make_program", make_and_note)
    return made


def take_no_more(engine: Engine) -> None:
    """Let the engine take no batch any more, as if its process had died now."""
    engine._runtime.pump._runner.is_stopping = True


def mute_wakeups(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose every wake-up that the engine sends to other nodes."""
    store = engine.store
    assert isinstance(store, PostgresStore)
    monkeypatch.setattr(store._wakeups, "send", lambda _why: None)


def change_options(engine: TestEngine, **options: Any) -> None:
    """Give an engine other options for its next restart."""
    engine._options.update(options)


async def crash(engine: Engine) -> None:
    """End an engine as a killed process does: nobody is told, and what is not committed never was."""
    await engine._runtime.crash(EngineClosed("Expected an answer, but the node was killed. Ask another."))
    await engine.store.close()


async def wait_for_fault(engine: Engine, patience: float) -> BaseException | None:
    """Wait until a batch of the engine has ended by a fault that it does not survive, and give the fault."""
    tasks = engine._runtime.pump.tasks
    ended, _ = await asyncio.wait(tasks, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
    (task,) = ended
    return task.exception()


def submit_began(engine: Engine, row: ExecutionRow, number: int, attempt: int) -> asyncio.Future[Answer]:
    """Let a suspect activity ask whether it may begin, as the runner does; the answer."""
    request = Request(row.org, ActivityBegan(number=number, attempt=attempt), execution_id=row.execution_id)
    request.future = asyncio.get_running_loop().create_future()
    engine._runtime.pump.submit(request)
    return request.future


def give_up_lease(engine: Engine, seconds: float) -> None:
    """Let the engine do what it does before it ends a process that is stuck. From another thread."""
    engine._runtime.membership.give_up_lease(seconds)
