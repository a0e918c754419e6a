"""The diagrams and cases of the suite `token-simulation`: which elements are entered and left after which triggers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast.bpmn import model
from tests.bpmn.suites.simulator_models import KEY, Setting, complete_model
from tests.bpmn.suites.simulator_traces import ScopeTrace, SimulatorTrace, read_records
from tests.bpmn.support.playing import read_model
from tests.bpmn.support.playing_systems import PlayedSystem
from tests.bpmn.support.suite_files import find_suite

MESSAGE_KEY: Final = KEY.text.strip('"')


@dataclass(frozen=True)
class SimulatorCase:
    """One case: a diagram, and what is done and expected, step by step."""

    number: int
    path: Path
    steps: Sequence[dict[str, Any]]
    is_skipped: bool

    @property
    def id(self) -> str:
        """The name of the case among all: its number, and the name of its diagram."""
        return f"{self.number}-{self.name}"

    @property
    def name(self) -> str:
        """The name of the diagram."""
        return self.path.stem.removeprefix("Simulator.")

    @property
    def expects_end(self) -> bool:
        """Whether nothing may be left in the end."""
        return any("expect_destroyed" in step for step in self.steps)

    @property
    def expected(self) -> list[str]:
        """The whole expected trace."""
        return [line for step in self.steps for line in step.get("expect_trace") or ()]


def list_cases() -> Iterator[SimulatorCase]:
    """All cases, or none where the suite is not at hand."""
    folder = find_suite("token-simulation")
    if folder is None:
        return
    for number, case in enumerate(json.loads((folder / "cases.json").read_text())["cases"]):
        yield SimulatorCase(number, folder / case["diagram"], case["steps"], case["skipped"])


class SimulatorRun:
    """Plays one case."""

    def __init__(self, case: SimulatorCase) -> None:
        self._case = case
        drawn = read_model(case.path.read_bytes(), case.path.name)
        self._flows = {flow.id for process in drawn.processes for flow in list_flows(process)}
        self._message_flows = {flow.id for flow in drawn.message_flows}
        self._pools = {one.id: one.process for one in drawn.participants}
        self._definitions = complete_model(drawn, self._find_setting(drawn))
        self.system = PlayedSystem(self._definitions)

    def _find_setting(self, drawn: model.Definitions) -> Setting:
        waiting = {element for step in self._case.steps for element in step.get("wait_at", ())}
        chosen = {step["config"]: step["active_outgoing"] for step in self._case.steps if "config" in step}
        tasks = {node.id for process in drawn.processes for node in list_tasks(process)}
        entered: dict[str, int] = {}
        for line in self._case.expected:
            verb, element, _ = line.split(":")
            if element in tasks and verb == "signal":
                waiting.add(element)
            if element in tasks and verb in ("enter", "exit"):
                entered[element] = entered.get(element, 0) + (1 if verb == "enter" else -1)
        return Setting(waiting | {element for element, count in entered.items() if count}, chosen)

    def play(self) -> None:
        """Do everything that the case does."""
        for step in self._case.steps:
            if "trigger" in step:
                self.system.trigger(step["trigger"])
            elif "signal" in step:
                self.system.send_message(step["signal"], MESSAGE_KEY)

    def read_expected(self) -> list[ScopeTrace]:
        """What the simulator saw, per scope."""
        trace = SimulatorTrace(self._flows, self._message_flows)
        for step in self._case.steps:
            trace.read(step.get("expect_trace") or ())
        found = list(trace.traces.values())
        for one in found:
            one.element = self._pools.get(one.element, one.element)
        return found

    def read_found(self) -> list[ScopeTrace]:
        """What the interpreter recorded, per scope."""
        return [trace for one in self.system.executions for trace in read_records(one.records).values()]


def list_flows(container: model.AnyContainer) -> Iterator[model.SequenceFlow]:
    """The flows of a process or sub-process, with those inside."""
    yield from container.flows
    for node in container.nodes:
        if isinstance(node, model.SubProcess):
            yield from list_flows(node)


def list_tasks(container: model.AnyContainer) -> Iterator[model.AnyNode]:
    """The activities of a process or sub-process that are no sub-processes, with those inside."""
    for node in container.nodes:
        if isinstance(node, model.SubProcess):
            yield from list_tasks(node)
        elif isinstance(node, model.Activity) and not isinstance(node, model.ReceiveTask):
            yield node
