"""One run of a scenario in a simulated world, and its outcome."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from holdfast.code.program import CodeProgram
from holdfast.core import codec
from holdfast.core.instants import SECOND
from holdfast.core.program import Program
from holdfast.simulation.checker import check_world
from holdfast.simulation.clients import ClientLedger, describe_error
from holdfast.simulation.derived_clients import DerivingClient
from holdfast.simulation.loop import NothingScheduled, TooManyCallbacks
from holdfast.simulation.node_faults import NodeFault, inject_node_faults, restore
from holdfast.simulation.outcomes import MOST_EXECUTIONS, ORG, ExecutionRecord, read_records, summarise
from holdfast.simulation.plans import Scenario
from holdfast.simulation.poison_store import RefusedWrite
from holdfast.simulation.poison_watch import Actor, PoisonWatch
from holdfast.simulation.poisons import is_of_poisons
from holdfast.simulation.reach_checker import has_outbox
from holdfast.simulation.scripted import BY_NAME, NONCES, POISON_SWITCH
from holdfast.simulation.world import MILLI, World, spawn
from holdfast.store.contract import ExecutionFilter, Store

CHECK_MILLIS: Final = 1_000
"""How often a run is checked for its end, in virtual time."""
LONGEST_SECONDS: Final = 900
"""The virtual time after which a run counts as stuck: no plan takes that long, whatever the faults."""


class RunOutcome(msgspec.Struct, frozen=True):
    """How one run of a scenario ended: its results by program, its problems, the faults that were injected."""

    summary: dict[str, Any]
    problems: list[str]
    faults: list[str]
    turns: int
    digest: str
    """The same for two runs of one seed, in whatever process."""


class RunStuck(Exception):
    """The run did not end within its virtual time, or a client failed."""


def run_scenario(
    world: World, scenario: Scenario, nodes: int, node_fault: NodeFault | None = None, poisons: PoisonWatch | None = None
) -> RunOutcome:
    """Run a scenario to its end in a world, with a node fault beside the faults of its backend, or beside poison turns."""
    NONCES.reset()
    POISON_SWITCH.strike = None if poisons is None else poisons.strike
    ledger = ClientLedger()
    with catch_errors(ledger):
        try:
            world.may_go_back = node_fault is restore
            if node_fault is not None:
                _ = spawn(world.loop, inject_node_faults(world, node_fault))
            return world.loop.run(_run_scenario(world, scenario, nodes, ledger, poisons))
        except (NothingScheduled, TooManyCallbacks, RunStuck) as error:
            return _fail(world, ledger, f"the run did not end: {error}")
        except Exception as error:  # noqa: BLE001 - the message must name the seed
            return _fail(world, ledger, f"the run ended by an exception:\n{_format(error)}")
        finally:
            POISON_SWITCH.strike = None
            world.clear()
            world.loop.close()


def _fail(world: World, ledger: ClientLedger, reason: str) -> RunOutcome:
    problems = [*world.backend.monitor.problems, *ledger.problems, *world.loop.problems, reason]
    return RunOutcome({}, problems, world.trace, 0, "")


async def _run_scenario(
    world: World, scenario: Scenario, nodes: int, ledger: ClientLedger, poisons: PoisonWatch | None
) -> RunOutcome:
    world.open_nodes(nodes)
    clients: list[Actor] = [
        DerivingClient(world, f"c{index}", calls, ledger) for index, calls in enumerate(scenario.clients)
    ]
    clients += [] if poisons is None else poisons.make_actors(ledger)
    begun = world.loop.now
    while not await _has_ended(world, clients, ledger):
        if world.loop.now - begun > LONGEST_SECONDS * SECOND:
            raise RunStuck("\n".join(await describe_state(world, clients)))
        await world.loop.pause(CHECK_MILLIS * MILLI)
    await world.shut_down()
    world.loop.sweep()
    return await _check(world, ledger)


async def _has_ended(world: World, clients: list[Actor], ledger: ClientLedger) -> bool:
    """Whether all clients are done, all executions closed, and inbox and outbox are empty."""
    for client in clients:
        if client.task.done() and (error := client.task.exception()) is not None:
            ledger.problems.append(f"client {client.name} did not expect at {client.present}: {describe_error(error)}")
            raise RunStuck("\n".join(await describe_state(world, clients)))
    observer = await world.backend.find_observer()
    if observer is None or not all(client.task.done() for client in clients):
        return False
    counts = await observer.count()
    return not counts.executions and not counts.inbox and not await has_outbox(observer)


async def _check(world: World, ledger: ClientLedger) -> RunOutcome:
    backend = world.backend
    async with backend.open_for_checks() as store:
        records = await read_records(store, backend.monitor.rows)
        problems = [*world.loop.problems, *await check_world(store, backend.monitor, ledger, records, make_program)]
    turns = sum(backend.monitor.commits.values())
    digest = f"{backend.monitor.digest}-{world.loop.steps}"
    summary = summarise([record for record in records if not is_of_poisons(record.plan)])
    return RunOutcome(summary, problems, world.trace, turns, digest)


def make_program(record: ExecutionRecord) -> Program:
    """A new program of the simulated workflow, to replay a history."""
    return CodeProgram(BY_NAME[record.row.workflow], record.row.org, record.row.execution_id)


# --- reports of failing runs --------------------------------------------------------------------------------------------


async def describe_state(world: World, clients: list[Actor]) -> list[str]:
    """What clients, nodes and executions wait for, when a run is stuck."""
    lines = [f"after {world.loop.time():.3f} virtual seconds:"]
    lines += [f"  client {client.name} is at {client.present}" for client in clients if client.present is not None]
    lines += [f"  {node.name} is {'open' if node.is_open else 'opening'}" for node in world.nodes.values()]
    observer = await world.backend.find_observer()
    if observer is None:
        return [*lines, "  no store is open"]
    counts = await observer.count()
    lines.append(f"  the store holds {counts.timers} timers, {counts.inbox} inbox rows, {counts.dead_letters} dead letters")
    for letter in await observer.list_dead_letters(ORG):
        lines.append(f"  dead letter for '{letter.workflow_id}' {letter.execution_id}: {letter.reason}: {letter.body!r}")
    for row in await observer.list_executions(ExecutionFilter(ORG, limit=MOST_EXECUTIONS)):
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
        f"  execution {execution_id} of '{row.workflow_id}' is {row.status} on {row.nodes}: {row.details.decode()}",
        f"    {' '.join(kinds)}",
    ]


def _format(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


class _ErrorCollector(logging.Handler):
    """Makes every error that the engine logs with an exception a problem of the run."""

    def __init__(self, ledger: ClientLedger) -> None:
        super().__init__(logging.ERROR)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        """Note the error, if it has an exception."""
        if record.exc_info is not None and not isinstance(record.exc_info[1], RefusedWrite):
            trace = logging.Formatter().formatException(record.exc_info)
            self._ledger.problems.append(f"the engine logged: {record.getMessage()}\n{trace}")


@contextmanager
def catch_errors(ledger: ClientLedger) -> Iterator[None]:
    """Collect errors that the engine logs with an exception, and hide its log, which is full of simulated failures."""
    logger = logging.getLogger("holdfast")
    handler, propagates, level = _ErrorCollector(ledger), logger.propagate, logger.level
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
        logger.setLevel(level)
