"""Carries test cases of processes out: each on an engine of its own, in memory and in virtual time.

    report = run_process_cases("order.process-test.json")
    report.check()  # raises AssertionError that names every case that failed

Nothing happens by itself between two instructions but what follows from the first: the engine comes to rest after each, jobs
of mocked types do what their mocks say, and conditional behaviour acts. Time passes only where a case says so. Then it goes
from one due time to the next, so that jobs which begin meanwhile are served at their times.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.errors import HoldfastError, InvalidArguments
from holdfast.testing import process_cases as cases
from holdfast.testing.coverage import Coverage
from holdfast.testing.engine import TestEngine
from holdfast.testing.process_actions import Actions, find_start, find_target
from holdfast.testing.process_assertions import Assertions
from holdfast.testing.process_instances import Instances
from holdfast.testing.process_models import CaseFailed, CaseModels

T = TypeVar("T")
PathLike: TypeAlias = "str | os.PathLike[str]"

MOST_REACTIONS: Final = 1_000
"""How many jobs of mocked types are served before time passes or the next instruction comes; then the case fails."""
MOST_ACTIONS: Final = 1_000
"""How many actions of conditional behaviour are taken behind one instruction; then the case fails."""
PATIENCE: Final = 60.0
"""For how many real seconds an instruction may take, with all that follows from it; then the case fails."""
ENDINGS: Final = (".bpmn", ".bpmn20.xml", ".dmn", ".form")
"""Which files beside a case file are deployed where it names none."""


class CaseOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one test case of a process."""

    file: str
    name: str
    failure: str = ""
    """Why it failed; empty if it passed."""
    instruction: int = 0
    """The number of the instruction that failed, from 1 on; 0 if it passed, or failed before the first."""

    @property
    def has_passed(self) -> bool:
        """Whether everything that the case expects held."""
        return not self.failure

    def describe(self) -> str:
        """The outcome as a line: the case, and what went wrong at which instruction."""
        if self.has_passed:
            return f"passed: {self.name} ({self.file})"
        place = f", instruction {self.instruction}" if self.instruction else ""
        return f"failed: {self.name} ({self.file}{place}): {self.failure}"


class CaseReport(msgspec.Struct, frozen=True):
    """What became of all cases of a run, and what they covered of the processes."""

    outcomes: Sequence[CaseOutcome]
    coverage: Coverage

    @property
    def failed(self) -> list[CaseOutcome]:
        """The cases that failed, in their order."""
        return [one for one in self.outcomes if not one.has_passed]

    def check(self) -> None:
        """Raises AssertionError with a line for each case that failed, or if there is no case at all."""
        if not self.outcomes:
            raise AssertionError("Expected test cases of processes, but the files hold none.")
        if self.failed:
            raise AssertionError("\n".join(one.describe() for one in self.failed))


class CaseSource(msgspec.Struct, frozen=True):
    """A case file that was read, with the files that its cases deploy."""

    file: str
    cases: tuple[cases.ProcessCase, ...]
    resources: Mapping[str, bytes]


class CaseSetting(msgspec.Struct, frozen=True):
    """What all cases of a run have in common: the code beside the processes, and how long an instruction may take."""

    activities: Sequence[Activity[..., Any]] = ()
    workflows: Sequence[Workflow[..., Any]] = ()
    patience: float = PATIENCE


DEFAULT_SETTING: Final = CaseSetting()


def run_process_cases(
    *paths: PathLike,
    resources: Iterable[PathLike] = (),
    activities: Iterable[Activity[..., Any]] = (),
    workflows: Iterable[Workflow[..., Any]] = (),
    patience: float = PATIENCE,
    on_outcome: Callable[[CaseOutcome], None] | None = None,
) -> CaseReport:
    """Carry out all cases of some files, one after the other.

    Deployed are the files that `resources` names; else those that a case file names, relative to itself; else all .bpmn,
    .dmn and .form files beside it. Jobs of the types of `activities` are done by them, all others wait for the case; call
    activities can call `workflows`. A case fails if what follows from one instruction has no end within `patience` real
    seconds. `on_outcome` is called after each case. Raises InvalidArguments if a file cannot be read or is no case file.
    """
    named = list(resources)
    sources = [load_cases(path, named) for path in paths]
    return run_apart(_run_all(sources, CaseSetting(list(activities), list(workflows), patience), on_outcome))


def load_cases(path: PathLike, resources: Sequence[PathLike] = ()) -> CaseSource:
    """Read a case file, and the files that it needs. Raises InvalidArguments."""
    file = Path(path)
    read = cases.parse_cases(_read(file), str(path))
    if resources:
        needed = [Path(one) for one in resources]
    elif read.resources:
        needed = [file.parent / one for one in read.resources]
    else:
        needed = sorted(one for one in file.parent.iterdir() if one.name.endswith(ENDINGS))
    if not needed:
        raise InvalidArguments(
            f"Expected files to deploy for {path}, but it names none and none is beside it. "
            'Name them: "resources": ["order.bpmn"].'
        )
    return CaseSource(str(path), read.test_cases, {one.name: _read(one) for one in needed})


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end: in a thread of its own where a loop is running already, as in async tests."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _run_all(
    sources: Sequence[CaseSource],
    setting: CaseSetting,
    on_outcome: Callable[[CaseOutcome], None] | None,
) -> CaseReport:
    outcomes: list[CaseOutcome] = []
    coverage = Coverage()
    for source in sources:
        for case in source.cases:
            outcome = await run_case(case, source, coverage, setting)
            outcomes.append(outcome)
            if on_outcome is not None:
                on_outcome(outcome)
    return CaseReport(outcomes, coverage)


async def run_case(
    case: cases.ProcessCase, source: CaseSource, coverage: Coverage, setting: CaseSetting = DEFAULT_SETTING
) -> CaseOutcome:
    """Carry out one case. What it covers is added to `coverage`, also if it fails."""
    start = find_start(case.instructions)
    code: dict[str, Any] = {"activities": setting.activities, "workflows": setting.workflows}
    async with TestEngine(auto_advance=False, start=start, **code) as engine:
        taken = 0
        try:
            models = CaseModels(source.resources)
            coverage.add(models, ())
            await engine.deploy(source.resources)
            run = CaseRun(engine, models)
            try:
                for instruction in case.instructions:
                    taken += 1
                    await _carry_out(run, instruction, setting.patience)
            finally:
                coverage.add(models, await run.instances.list_all())
        except HoldfastError as error:
            return CaseOutcome(file=source.file, name=case.name, failure=error.message, instruction=taken)
    return CaseOutcome(file=source.file, name=case.name)


async def _carry_out(run: CaseRun, instruction: cases.AnyInstruction, patience: float) -> None:
    try:
        async with asyncio.timeout(patience):
            await run.carry_out(instruction)
    except TimeoutError:
        acted = f" Conditional behaviour has acted {run.actions_taken} times meanwhile." if run.actions_taken else ""
        raise CaseFailed(
            f"Expected what follows from the instruction to end, but it has not within {patience:g} s.{acted} "
            "Look for a loop in the process that waits for nothing, or for an activity that does not return."
        ) from None


class Behavior:
    """A conditional behaviour while a case runs: how many of its actions were taken, and when the last one was."""

    def __init__(self, instruction: cases.ConditionalBehavior) -> None:
        self.name = instruction.name
        self.conditions = instruction.conditions
        self._actions = instruction.actions
        self._taken = 0
        self.acted_at: int | None = None
        """How long the histories were when it acted last; None where its conditions do not hold."""

    def take_action(self) -> cases.Action:
        """The next action; the last one again and again."""
        action = self._actions[min(self._taken, len(self._actions) - 1)]
        self._taken += 1
        return action


class CaseRun:
    """One case while it is carried out."""

    def __init__(self, engine: TestEngine, models: CaseModels) -> None:
        self._engine = engine
        self.instances = Instances(engine, models)
        self._actions = Actions(engine, self.instances)
        self._assertions = Assertions(self.instances, self._actions.decisions)
        self._behaviors: list[Behavior] = []
        self.actions_taken = 0
        """How many actions of conditional behaviour were taken behind the last instruction."""

    async def carry_out(self, instruction: cases.AnyInstruction) -> None:
        """Carry out an instruction, and everything that follows from it. Raises CaseFailed or another HoldfastError."""
        self.actions_taken = 0
        match instruction:
            case cases.ConditionalBehavior():
                if not instruction.actions or not instruction.conditions:
                    raise CaseFailed("Expected CONDITIONAL_BEHAVIOR to have conditions and actions, but it lacks them.")
                self._behaviors.append(Behavior(instruction))
            case cases.IncreaseTime() | cases.SetTime():
                await self._pass_time(find_target(self._engine, instruction))
            case _ if isinstance(instruction, cases.ASSERTIONS):
                await self._assertions.check(cast("cases.Assertion", instruction))
                return
            case _:
                await self._actions.carry_out(cast("cases.Action", instruction))
        await self._react()

    async def _pass_time(self, target: datetime) -> None:
        clock = self._engine.clock
        while (due := clock.next_due) is not None and due <= target:
            await clock.advance_to(max(due, clock.present))
            await self._react()
        await clock.advance_to(target)

    async def _react(self) -> None:
        """Let mocked jobs and conditional behaviour act until nothing follows any more."""
        served = 0
        while True:
            if await self._actions.serve_mocked_job():
                served += 1
                if served >= MOST_REACTIONS:
                    raise CaseFailed(
                        f"Expected the case to come to rest, but after {MOST_REACTIONS} mocked jobs it had not. "
                        "Look for a loop in the process."
                    )
            elif not await self._behave():
                return

    async def _behave(self) -> bool:
        """Let the first conditional behaviour act that may; whether one did.

        It may when its conditions hold, and did not before or something has happened since it acted last.
        """
        for behavior in self._behaviors:
            if not await self._hold(behavior.conditions):
                behavior.acted_at = None
                continue
            length = sum([one.info.history_length for one in await self.instances.list_all()])
            if behavior.acted_at == length:
                continue
            if self.actions_taken >= MOST_ACTIONS:
                name = f" '{behavior.name}'" if behavior.name else ""
                raise CaseFailed(
                    f"Expected the case to come to rest, but after {MOST_ACTIONS} actions of conditional behaviour the "
                    f"conditions of CONDITIONAL_BEHAVIOR{name} still hold. Let its action end one of them, or add one."
                )
            self.actions_taken += 1
            behavior.acted_at = length
            action = behavior.take_action()
            if isinstance(action, cases.IncreaseTime | cases.SetTime):
                await self._engine.clock.advance_to(find_target(self._engine, action))
            else:
                await self._actions.carry_out(action)
            return True
        return False

    async def _hold(self, conditions: Iterable[cases.Assertion]) -> bool:
        try:
            for condition in conditions:
                await self._assertions.check(condition)
        except CaseFailed:
            return False
        return True


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArguments(f"Expected to read '{path}', but: {error.strerror or error}. Check the path.") from error
