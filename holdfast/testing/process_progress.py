"""How far an instance of a process came: which elements were entered and left, flows taken, variables set, decisions made.

Read from the records of its history alone. Unlike the state of the interpreter it keeps what is over.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.bpmn import records
from holdfast.bpmn.state import ROOT
from holdfast.core.events import ProcessAdvanced


class ElementStanding(StrEnum):
    """What became of an instance of an element."""

    ACTIVE = "active"
    COMPLETED = "completed"
    TERMINATED = "terminated"


class ElementInstance(msgspec.Struct):
    """An element as it was entered once."""

    key: int
    """Its key in the process; 0 if it was left as soon as it was entered."""
    element: str
    scope: int
    """The key of the process or sub-process around it."""
    standing: ElementStanding = ElementStanding.ACTIVE
    left: int = 0
    """Its place among those that were left; 0 while it is active."""


class Evaluation(msgspec.Struct, frozen=True):
    """What a decision gave, and the numbers of the rules that matched."""

    output: Any
    rules: frozenset[int]


class ProcessProgress:
    """What the records of one instance tell, in their order."""

    def __init__(self) -> None:
        self.elements: list[ElementInstance] = []
        """Every instance of an element in the order in which it was entered; the process itself aside."""
        self.flows: Counter[str] = Counter()
        """How often each sequence flow was taken."""
        self.decisions: dict[str, Evaluation] = {}
        """By the id of the decision, its last evaluation."""
        self._by_key: dict[int, ElementInstance] = {}
        self._variables: dict[int, dict[str, Any]] = {}
        self._catchers: dict[int, str] = {}
        self._left = 0

    def take(self, event: ProcessAdvanced) -> None:
        """Take the records of an event."""
        for record in records.decode_records(event.records):
            self._take(record)

    def close(self) -> None:
        """The instance has closed: what is still active was terminated."""
        for one in self.elements:
            if one.standing is ElementStanding.ACTIVE:
                self._leave(one, ElementStanding.TERMINATED)

    def find_variables(self, key: int | None) -> dict[str, Any]:
        """The variables of the process, or the local ones of an element that is or was active."""
        return self._variables.get(ROOT if key is None else key, {})

    def find_element(self, number: int) -> str:
        """The element that waits or waited for what a command asked for, by its number; empty if none did."""
        return self._catchers.get(number, "")

    # --- records ---

    def _take(self, record: records.AnyRecord) -> None:
        match record:
            case records.Passed():
                self._pass(record.element, record.scope, record.flows)
            case records.Entered():
                self._enter(record)
            case records.Left():
                self._complete(record)
            case records.Flowed():
                self.flows.update(record.flows)
            case records.Ended():
                self._end(record.key)
            case records.Joined():
                self._pass(record.element, record.scope, record.flows)
            case records.Set() | records.Began():
                self._set(record.key, record.variables)
            case records.Waits():
                self._catchers.update((wait.number, wait.catcher) for wait in record.waits)
            case records.Decided():
                self._decide(record)
            case _:
                pass

    def _pass(self, element: str, scope: int, flows: tuple[str, ...]) -> None:
        passed = ElementInstance(0, element, scope)
        self.elements.append(passed)
        self._leave(passed, ElementStanding.COMPLETED)
        self.flows.update(flows)

    def _enter(self, record: records.Entered) -> None:
        self._set(record.key, record.variables)
        if record.key != ROOT:
            entered = self._by_key[record.key] = ElementInstance(record.key, record.element, record.scope)
            self.elements.append(entered)

    def _complete(self, record: records.Left) -> None:
        self.flows.update(record.flows)
        if record.key in self._by_key:
            self._leave(self._by_key[record.key], ElementStanding.COMPLETED)

    def _end(self, key: int) -> None:
        """An instance was ended with all that is inside of it."""
        inside = {key}
        for one in self.elements:  # what is inside was entered later
            if one.key and (one.key in inside or one.scope in inside):
                inside.add(one.key)
                if one.standing is ElementStanding.ACTIVE:
                    self._leave(one, ElementStanding.TERMINATED)

    def _leave(self, one: ElementInstance, standing: ElementStanding) -> None:
        self._left += 1
        one.standing, one.left = standing, self._left

    def _set(self, key: int, variables: records.Raws | None) -> None:
        if variables is not None:
            known = self._variables.setdefault(key, {})
            known.update((name, msgspec.json.decode(value)) for name, value in variables.items())

    def _decide(self, record: records.Decided) -> None:
        trace = msgspec.json.decode(record.trace)
        made = next((one for one in trace if one["id"] == record.decision), None)
        if made is not None:
            rules = frozenset(rule["number"] for table in made["tables"] for rule in table["rules"])
            self.decisions[record.decision] = Evaluation(made["value"], rules)
