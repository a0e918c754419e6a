"""A simulation that cannot fail proves nothing: stores that break their promises are found, and the seed is named."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import CLOSED
from holdfast.core.publications import DeliveryMode, EventOptions, Publication
from holdfast.core.schedules import PlannedRun, ScheduleDetails
from holdfast.errors import SimulationFailed
from holdfast.simulation.environments import MemoryEnvironment, SqliteEnvironment
from holdfast.simulation.generator import make_family_scenario, make_scenario
from holdfast.simulation.memory_backend import ChooseFault, MemoryBackend, WatchedTables
from holdfast.simulation.seeds import SimulationSummary, compare_runs, make_folder
from holdfast.simulation.sqlite_backend import FaultInjectingStore, FaultInjectingTransaction, SqliteBackend
from holdfast.simulation.world import World
from holdfast.store.contract import Store, Transaction
from holdfast.store.matching import find_options
from holdfast.store.memory.tables import Changes

SEEDS = range(40)
SELDOM = 7
"""A planted fault happens each so manyeth time."""


class PlantedTables(WatchedTables):
    """Tables that sometimes spoil a commit."""

    def __init__(self, monitor: object, spoil: Callable[[Changes], bool]) -> None:
        super().__init__(monitor)  # type: ignore[arg-type]
        self._spoil = spoil
        self._left = SELDOM

    def apply(self, changes: Changes) -> None:
        if self._left <= 1 and self._spoil(changes):
            self._left = SELDOM
        else:
            self._left -= 1
        super().apply(changes)


def plant(spoil: Callable[[Changes], bool]) -> type[MemoryBackend]:
    """A backend whose database spoils commits; `spoil` says whether it found something to spoil."""

    class PlantedStage(MemoryBackend):
        def __init__(self, world: World, decide: ChooseFault, *, is_slow: bool) -> None:
            super().__init__(world, decide, is_slow=is_slow)
            self._database.tables = PlantedTables(self.monitor, spoil)

    return PlantedStage


def drop_envelope(changes: Changes) -> bool:
    return bool(changes.inbox) and bool(changes.inbox.popitem())


def double_envelope(changes: Changes) -> bool:
    for row in list(changes.inbox.values()):
        changes.inbox[row.id + 1_000_000] = replace(row, id=row.id + 1_000_000)
        return True
    return False


def move_to_the_end(changes: Changes) -> bool:
    """What is readdressed gets a new place in the order of arrival, as if it were inserted anew."""
    for row in list(changes.inbox.values()):
        if row.id in changes.consumed:
            del changes.inbox[row.id]
            changes.inbox[row.id + 1_000_000] = replace(row, id=row.id + 1_000_000)
            return True
    return False


def lose_timer(changes: Changes) -> bool:
    for key, timer in list(changes.timers.items()):
        if timer is not None:
            del changes.timers[key]
            return True
    return False


def keep_ended_timer(changes: Changes) -> bool:
    for key, timer in list(changes.timers.items()):
        if timer is None:
            del changes.timers[key]
            return True
    return False


def keep_taken_envelope(changes: Changes) -> bool:
    return bool(changes.consumed) and changes.consumed.pop() > 0


def lose_events(changes: Changes) -> bool:
    return bool(changes.histories) and bool(changes.histories.popitem())


def lose_row(changes: Changes) -> bool:
    for execution_id, row in list(changes.executions.items()):
        if row.status not in CLOSED:
            del changes.executions[execution_id]
            return True
    return False


def forget_request(changes: Changes) -> bool:
    return bool(changes.requests) and bool(changes.requests.popitem())


def forget_node(changes: Changes) -> bool:
    for execution_id, row in list(changes.executions.items()):
        if row.nodes:
            changes.executions[execution_id] = replace(row, nodes=())
            return True
    return False


PLANTED: Mapping[str, Callable[[Changes], bool]] = {
    "an envelope is dropped": drop_envelope,
    "an envelope is delivered twice": double_envelope,
    "an envelope that is handed on goes to the end": move_to_the_end,
    "a timer is lost": lose_timer,
    "a timer stays after its end": keep_ended_timer,
    "an envelope stays after it was taken": keep_taken_envelope,
    "events are lost": lose_events,
    "a row is lost": lose_row,
    "a request id is forgotten": forget_request,
    "who runs the activities is forgotten": forget_node,
}


def find_failing_seed(try_seed: Callable[[int], None]) -> tuple[int, str]:
    for seed in SEEDS:
        try:
            try_seed(seed)
        except SimulationFailed as error:
            return seed, error.message
    pytest.fail(f"no seed of {SEEDS} found it")


@pytest.mark.parametrize("fault", PLANTED)
def test_a_broken_database_is_found(fault: str) -> None:
    def try_seed(seed: int) -> None:
        compare_runs(
            MemoryEnvironment(make_scenario(seed), 3, plant(PLANTED[fault])), seed, SimulationSummary("memory", seed)
        )

    seed, message = find_failing_seed(try_seed)

    assert f"seed {seed} on memory" in message
    assert f"holdfast simulate --seeds 1 --first {seed} --store memory --nodes 3" in message


# --- messages, events, broadcast signals, updates, people ----------------------------------------------------------------


def leave_subscription(changes: Changes) -> bool:
    """A publisher forgets to take the subscription along."""
    for key, subscription in list(changes.subscriptions.items()):
        if subscription is None:
            del changes.subscriptions[key]
            return True
    return False


def lose_subscription(changes: Changes) -> bool:
    for key, subscription in list(changes.subscriptions.items()):
        if subscription is not None:
            del changes.subscriptions[key]
            return True
    return False


def lose_outbox(changes: Changes) -> bool:
    """What a turn publishes, or puts back, never reaches the outbox."""
    for key, row in list(changes.publications.items()):
        if row is not None:
            del changes.publications[key]
            return True
    return False


def keep_outbox(changes: Changes) -> bool:
    """What was published stays in the outbox, and is published again."""
    for key, row in list(changes.publications.items()):
        if row is None:
            del changes.publications[key]
            return True
    return False


def lose_kept(changes: Changes) -> bool:
    for key, row in list(changes.pending.items()):
        if row is not None:
            del changes.pending[key]
            return True
    return False


def keep_taken(changes: Changes) -> bool:
    for key, row in list(changes.pending.items()):
        if row is None:
            del changes.pending[key]
            return True
    return False


def lose_task(changes: Changes) -> bool:
    return bool(changes.tasks) and bool(changes.tasks.popitem())


def fire_again(changes: Changes) -> bool:
    """A schedule starts its execution and forgets that it did."""
    for key, row in list(changes.schedules.items()):
        if row is not None and changes.inbox:
            del changes.schedules[key]
            return True
    return False


def lose_start(changes: Changes) -> bool:
    for key, row in list(changes.inbox.items()):
        if b'"type":"start"' in row.body:
            del changes.inbox[key]
            return True
    return False


def lose_dead_letter(changes: Changes) -> bool:
    return bool(changes.dead_letters) and bool(changes.dead_letters.popitem())


def lose_task_event(changes: Changes) -> bool:
    return bool(changes.task_events) and bool(changes.task_events.pop())


PLANTED_IN_FAMILIES: Mapping[tuple[str, str], Callable[[Changes], bool]] = {
    ("messages", "a subscription stays after its end"): leave_subscription,
    ("messages", "a message is lost on its way to the outbox"): lose_outbox,
    ("messages", "a message stays in the outbox"): keep_outbox,
    ("messages", "a kept message is lost"): lose_kept,
    ("messages", "a kept message stays after it was taken"): keep_taken,
    ("events", "a kept event is lost"): lose_kept,
    ("events", "a kept event stays after it was taken"): keep_taken,
    ("broadcasts", "a subscription is lost"): lose_subscription,
    ("updates", "a request id is forgotten"): forget_request,
    ("tasks", "a task is lost"): lose_task,
    ("schedules", "a fire is forgotten"): fire_again,
}


PLANTED_IN_DERIVED: Mapping[tuple[str, str], Callable[[Changes], bool]] = {
    ("begins", "a start by a message or a broadcast signal is lost"): lose_start,
    ("begins", "a request id is forgotten"): forget_request,
    ("modes", "a dead letter is lost"): lose_dead_letter,
    ("modes", "a kept event is lost"): lose_kept,
    ("acts", "a step of a task is lost"): lose_task_event,
    ("overlaps", "a fire is forgotten"): fire_again,
}


@pytest.mark.parametrize(("family", "fault"), PLANTED_IN_FAMILIES)
def test_a_database_that_breaks_what_reaches_programs_is_found(family: str, fault: str) -> None:
    spoil = PLANTED_IN_FAMILIES[family, fault]

    def try_seed(seed: int) -> None:
        environment = MemoryEnvironment(make_family_scenario(seed, family), 3, plant(spoil))
        compare_runs(environment, seed, SimulationSummary("memory", seed))

    find_failing_seed(try_seed)


# --- what follows from the calls of clients is known without another run --------------------------------------------------


def find_derived_problem(family: str, backend: type[MemoryBackend] = MemoryBackend) -> None:
    def try_seed(seed: int) -> None:
        ended = MemoryEnvironment(make_family_scenario(seed, family), 3, backend).run_undisturbed()
        if ended.problems:
            raise SimulationFailed("\n".join(ended.problems))

    find_failing_seed(try_seed)


@pytest.mark.parametrize(("family", "fault"), PLANTED_IN_DERIVED)
def test_a_database_that_breaks_what_follows_from_the_calls_is_found(family: str, fault: str) -> None:
    find_derived_problem(family, plant(PLANTED_IN_DERIVED[family, fault]))


async def find_room_always(*_args: object) -> bool:
    return True


async def change_nothing(*_args: object) -> bool:
    return True


def start_at_once(firing: Any, planned: PlannedRun) -> None:
    firing.start(planned)


def forget_pause(details: ScheduleDetails, _now: Instant) -> ScheduleDetails:
    return details


def forget_modes(publication: Publication) -> EventOptions:
    return replace(find_options(publication), delivery_mode=DeliveryMode.ALL)


BROKEN: Mapping[tuple[str, str], tuple[str, object]] = {
    ("limits", "nobody counts what is open"): (
        "holdfast.engine.use_cases.open_limits.OpenLimits._find_room",
        find_room_always,
    ),
    ("pauses", "a pause is answered and not made"): ("holdfast.engine.use_cases.pausing.Pausing._change", change_nothing),
    ("overlaps", "a fire starts whatever is open"): ("holdfast.core.schedules._Firing._overlap", start_at_once),
    ("overlaps", "a schedule catches up with its pause"): ("holdfast.engine.use_cases.schedules.resume", forget_pause),
    ("modes", "everybody gets every event"): ("holdfast.store.wait_matching.find_options", forget_modes),
}


@pytest.mark.parametrize(("family", "fault"), BROKEN)
def test_an_engine_that_breaks_what_follows_from_the_calls_is_found(
    monkeypatch: pytest.MonkeyPatch, family: str, fault: str
) -> None:
    monkeypatch.setattr(*BROKEN[family, fault])

    find_derived_problem(family)


# --- a disk ---------------------------------------------------------------------------------------------------------------


class ForgetfulTransaction(FaultInjectingTransaction):
    """Says that it committed, and did not."""

    async def commit(self) -> None:
        await self._transaction.rollback()


class ForgetfulStore(FaultInjectingStore):
    """Forgets one commit, the twentieth."""

    begun = 0

    async def begin(self) -> Transaction:
        self.begun += 1
        if self.begun == 20:
            return ForgetfulTransaction(await self._store.begin(), self._backend, self._node)
        return await super().begin()


class ForgetfulStage(SqliteBackend):
    """A disk that lies."""

    def make_store(self, node: str) -> Store:
        pointed = super().make_store(node)
        assert isinstance(pointed, FaultInjectingStore)
        return ForgetfulStore(pointed._store, self, node)


def test_a_disk_that_lies_is_found() -> None:
    def try_seed(seed: int) -> None:
        with make_folder() as folder:
            compare_runs(
                SqliteEnvironment(make_scenario(seed), folder, ForgetfulStage), seed, SimulationSummary("sqlite", seed)
            )

    seed, message = find_failing_seed(try_seed)

    assert f"seed {seed} on sqlite" in message
    assert f"holdfast simulate --seeds 1 --first {seed} --store sqlite" in message
