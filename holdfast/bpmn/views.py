"""Records as people read them: one line for each thing that happened. Needs no model: ids are all there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from holdfast.bpmn import records
from holdfast.bpmn.records import AnyRecord


class AuditKind(StrEnum):
    """What an audit line tells of."""

    ENTERED = "entered"
    LEFT = "left"
    ENDED = "ended"
    """An element was ended before it completed: interrupted, terminated or cancelled."""
    FLOW = "flow"
    VARIABLE = "variable"
    WAITS = "waits"
    INCIDENT = "incident"
    RESOLVED = "resolved"
    SENT = "sent"
    DECIDED = "decided"


class AuditLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened in a process."""

    kind: AuditKind
    element: str = ""
    """The id of the element; empty for flows."""
    key: int = 0
    """Which instance of the element; 0 if it was entered and left in one."""
    flow: str = ""
    name: str = ""
    """The name of a variable, or of what is awaited or decided."""
    value: msgspec.Raw | None = None
    """The value of a variable, as JSON."""
    text: str = ""
    """More for people: of an incident its message, of a wait its kind."""
    scope: int = 0
    """The instance of the container, or of a variable its scope."""


class Auditor:
    """Expands the records of one execution, in the order of its history: it remembers which instance is which element."""

    def __init__(self) -> None:
        self._elements: dict[int, tuple[str, int]] = {}
        """By key: the element of an instance, and its scope."""
        self._inside: dict[int, dict[int, None]] = {}
        """By key: the instances inside."""

    def expand(self, made: Iterable[AnyRecord]) -> Iterator[AuditLine]:
        """What the records tell, line by line."""
        for record in made:
            show = _LINES.get(type(record))
            if show is not None:
                yield from show(self, record)

    def find(self, key: int) -> tuple[str, int]:
        """The element and the scope of an instance; empty if it is not known."""
        return self._elements.get(key, ("", 0))

    def enter(self, record: records.Entered) -> Iterator[AuditLine]:
        """An instance began, with its own variables."""
        self._elements[record.key] = record.element, record.scope
        self._inside.setdefault(record.scope, {})[record.key] = None
        yield AuditLine(AuditKind.ENTERED, record.element, record.key, scope=record.scope)
        yield from _list_variables(record.key, record.variables or {})

    def end(self, record: records.Ended) -> Iterator[AuditLine]:
        """An instance was ended; what was inside first."""
        ended, waiting = [], [record.key]
        while waiting:
            key = waiting.pop()
            if key in self._elements:
                ended.append(key)
                waiting.extend(self._inside.get(key, ()))
        for key in sorted(ended, reverse=True):
            element, scope = self._forget(key)
            yield AuditLine(AuditKind.ENDED, element, key, scope=scope)

    def _forget(self, key: int) -> tuple[str, int]:
        element, scope = self._elements.pop(key, ("", 0))
        self._inside.get(scope, {}).pop(key, None)
        self._inside.pop(key, None)
        return element, scope

    def leave(self, record: records.Left) -> Iterator[AuditLine]:
        """An instance completed, and its flows were taken."""
        element, scope = self._forget(record.key)
        yield AuditLine(AuditKind.LEFT, element, record.key, scope=scope)
        yield from _list_flows(record.flows, scope)


def expand(made: Iterable[AnyRecord]) -> list[AuditLine]:
    """What all records of an execution tell, from its first one on."""
    return list(Auditor().expand(made))


def _list_flows(flows: Iterable[str], scope: int) -> Iterator[AuditLine]:
    for flow in flows:
        yield AuditLine(AuditKind.FLOW, flow=flow, scope=scope)


def _list_variables(key: int, variables: Mapping[str, msgspec.Raw]) -> Iterator[AuditLine]:
    for name, value in variables.items():
        yield AuditLine(AuditKind.VARIABLE, name=name, value=value, scope=key)


def _pass(_auditor: Auditor, record: records.Passed) -> Iterator[AuditLine]:
    yield AuditLine(AuditKind.ENTERED, record.element, scope=record.scope)
    yield AuditLine(AuditKind.LEFT, record.element, scope=record.scope)
    yield from _list_flows(record.flows, record.scope)


def _flow(auditor: Auditor, record: records.Flowed) -> Iterator[AuditLine]:
    yield from _list_flows(record.flows, auditor.find(record.key)[1])


def _join(_auditor: Auditor, record: records.Joined) -> Iterator[AuditLine]:
    yield AuditLine(AuditKind.ENTERED, record.element, scope=record.scope)
    yield AuditLine(AuditKind.LEFT, record.element, scope=record.scope)
    yield from _list_flows(record.flows, record.scope)


def _begin(_auditor: Auditor, record: records.Began) -> Iterator[AuditLine]:
    yield from _list_variables(record.key, record.variables or {})


def _set(_auditor: Auditor, record: records.Set) -> Iterator[AuditLine]:
    yield from _list_variables(record.key, record.variables)


def _wait(_auditor: Auditor, record: records.Waits) -> Iterator[AuditLine]:
    for wait in record.waits:
        yield AuditLine(AuditKind.WAITS, wait.catcher, record.key, name=wait.name, text=wait.kind)


def _raise(auditor: Auditor, record: records.Incident) -> Iterator[AuditLine]:
    element, scope = auditor.find(record.key)
    yield AuditLine(
        AuditKind.INCIDENT, record.catcher or element, record.key, name=record.kind, text=record.message, scope=scope
    )


def _resolve(auditor: Auditor, record: records.Resolved) -> Iterator[AuditLine]:
    element, scope = auditor.find(record.key)
    yield AuditLine(AuditKind.RESOLVED, element, record.key, scope=scope)


def _send(_auditor: Auditor, record: records.Sent) -> Iterator[AuditLine]:
    yield AuditLine(AuditKind.SENT, record.element)


def _decide(_auditor: Auditor, record: records.Decided) -> Iterator[AuditLine]:
    yield AuditLine(AuditKind.DECIDED, record.element, name=record.decision, value=record.trace)


_LINES: Final[Mapping[type[records.Record], Callable[[Auditor, Any], Iterator[AuditLine]]]] = {
    records.Passed: _pass,
    records.Entered: Auditor.enter,
    records.Began: _begin,
    records.Left: Auditor.leave,
    records.Flowed: _flow,
    records.Ended: Auditor.end,
    records.Joined: _join,
    records.Set: _set,
    records.Waits: _wait,
    records.Incident: _raise,
    records.Resolved: _resolve,
    records.Sent: _send,
    records.Decided: _decide,
}
