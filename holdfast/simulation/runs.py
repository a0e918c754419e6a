"""One run of a scenario: a world from its beginning to its end, and what came of it."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from holdfast.code.instance import CodeProgram
from holdfast.core import codec
from holdfast.core.instants import SECOND
from holdfast.core.program import Program
from holdfast.simulation.checker import check_world
from holdfast.simulation.clients import Client, Ledger, describe_error
from holdfast.simulation.loop import LoopIsDry, LoopIsSpinning
from holdfast.simulation.outcomes import MOST_EXECUTIONS, ORG, Record, read_records, summarise
from holdfast.simulation.plans import Scenario
from holdfast.simulation.scripted import NONCES, scripted
from holdfast.simulation.troubles import Trouble, make_trouble
from holdfast.simulation.world import MILLI, World, spawn
from holdfast.store.contract import Filter, Store

LOOK_MILLIS: Final = 1_000
LONGEST_SECONDS: Final = 900
"""Of virtual time. No plan takes that long, whatever goes wrong."""


class Ended(msgspec.Struct, frozen=True):
    """What came of a run."""

    summary: dict[str, Any]
    problems: list[str]
    faults: list[str]
    turns: int
    digest: str
    """The same for two runs of one seed, in whatever process."""


class Stuck(Exception):
    """The run did not end."""


def live(world: World, scenario: Scenario, nodes: int, trouble: Trouble | None = None) -> Ended:
    """Run a scenario to its end, on a stage that is set up, with trouble beside what the stage makes itself."""
    NONCES.reset()
    ledger = Ledger()
    world.loop.on_error = lambda error: ledger.problems.append(f"nobody handled:\n{_format(error)}")
    with catch_errors(ledger):
        try:
            if trouble is not None:
                _ = spawn(world.loop, make_trouble(world, trouble))
            return world.loop.run(_live(world, scenario, nodes, ledger))
        except (LoopIsDry, LoopIsSpinning, Stuck) as error:
            return _fail(world, ledger, f"the run did not end: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed must be named
            return _fail(world, ledger, f"the run ended by an exception:\n{_format(error)}")
        finally:
            world.clear()
            world.loop.close()


def _fail(world: World, ledger: Ledger, reason: str) -> Ended:
    problems = [*world.stage.monitor.problems, *ledger.problems, reason]
    return Ended({}, problems, world.trace, 0, "")


async def _live(world: World, scenario: Scenario, nodes: int, ledger: Ledger) -> Ended:
    world.open_nodes(nodes)
    clients = [Client(world, f"c{index}", calls, ledger) for index, calls in enumerate(scenario.clients)]
    tasks = [spawn(world.loop, client.run()) for client in clients]
    begun = world.loop.now
    while not await _has_ended(world, clients, tasks, ledger):
        if world.loop.now - begun > LONGEST_SECONDS * SECOND:
            raise Stuck("\n".join(await describe_state(world, clients)))
        await world.loop.pause(LOOK_MILLIS * MILLI)
    await world.shut_down()
    world.loop.sweep()
    return await _examine(world, ledger)


async def _has_ended(world: World, clients: list[Client], tasks: list[asyncio.Task[None]], ledger: Ledger) -> bool:
    """Whether every client is done, nothing is open, and no envelope is left."""
    for client, task in zip(clients, tasks, strict=True):
        if task.done() and (error := task.exception()) is not None:
            ledger.problems.append(f"client {client.name} did not expect at {client.present}: {describe_error(error)}")
            raise Stuck("\n".join(await describe_state(world, clients)))
    observer = await world.stage.find_observer()
    if observer is None or not all(task.done() for task in tasks):
        return False
    counts = await observer.count()
    return not counts.executions and not counts.inbox


async def _examine(world: World, ledger: Ledger) -> Ended:
    stage = world.stage
    async with stage.examine() as store:
        records = await read_records(store, stage.monitor.rows)
        problems = await check_world(store, stage.monitor, ledger, records, make_program)
    turns = sum(stage.monitor.commits.values())
    digest = f"{stage.monitor.digest}-{world.loop.steps}"
    return Ended(summarise(records), problems, world.trace, turns, digest)


def make_program(record: Record) -> Program:
    """A fresh program, to replay a history."""
    return CodeProgram(scripted, record.row.org, record.row.execution_id)


# --- what a failing run shows --------------------------------------------------------------------------------------------


async def describe_state(world: World, clients: list[Client]) -> list[str]:
    """Who waits for what, for a run that is stuck."""
    lines = [f"after {world.loop.time():.3f} virtual seconds:"]
    lines += [f"  client {client.name} is at {client.present}" for client in clients if client.present is not None]
    lines += [f"  {node.name} is {'open' if node.is_open else 'opening'}" for node in world.nodes.values()]
    observer = await world.stage.find_observer()
    if observer is None:
        return [*lines, "  no store is open"]
    counts = await observer.count()
    lines.append(f"  the store holds {counts.timers} timers, {counts.inbox} inbox rows, {counts.dead_letters} dead letters")
    for letter in await observer.list_dead_letters(ORG):
        lines.append(f"  dead letter for '{letter.workflow_id}' {letter.execution_id}: {letter.reason}: {letter.body!r}")
    for row in await observer.list_executions(Filter(ORG, limit=MOST_EXECUTIONS)):
        if row.closed_at is None:
            lines.extend(await _describe_open(observer, row.execution_id))
    return lines


async def _describe_open(observer: Store, execution_id: str) -> list[str]:
    row = await observer.find_execution(ORG, execution_id)
    if row is None:
        return []
    history = await observer.load_history(execution_id)
    kinds = [type(event).__name__ for turn in history for event in codec.decode_events(turn.body, turn.schema)]
    return [
        f"  execution {execution_id} of '{row.workflow_id}' is {row.status} on {row.node}: {row.details.decode()}",
        f"    {' '.join(kinds)}",
    ]


def _format(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


class _Errors(logging.Handler):
    """What the engine logs as an error that should not happen is a problem of the run."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(logging.ERROR)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        if record.exc_info is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            self._ledger.problems.append(f"the engine logged: {record.getMessage()}\n{trace}")


@contextmanager
def catch_errors(ledger: Ledger) -> Iterator[None]:
    """Keep the engine's log away from people: thousands of simulated failures are in it."""
    logger = logging.getLogger("holdfast")
    handler, propagates, level = _Errors(ledger), logger.propagate, logger.level
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
        logger.setLevel(level)
