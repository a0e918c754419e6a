"""From the records of an execution to the overlay of its drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.bpmn import records
from holdfast.bpmn.drawing.overlays import Overlay


def make_overlay(happened: Iterable[records.AnyRecord], *, is_closed: bool = False) -> Overlay:
    """What an execution has done by all of its records, in their order. One that is closed has no tokens and no incidents.

    Each iteration of a multi-instance activity counts, its body does not. Tokens that wait at a join count there.
    """
    tally = _Tally()
    for record in happened:
        tally.apply(record)
    active, incidents = tally.count_active(), tally.count_incidents()
    return Overlay(
        taken_flows=dict(tally.flows),
        completed=dict(tally.completed),
        active={} if is_closed else dict(active),
        incidents={} if is_closed else dict(incidents),
    )


@dataclass(slots=True)
class _Instance:
    element: str
    scope: int
    is_body: bool = False
    incidents: set[int] = field(default_factory=set)


class _Tally:
    """The counts while records are read."""

    def __init__(self) -> None:
        self.flows: Counter[str] = Counter()
        self.completed: Counter[str] = Counter()
        self.instances: dict[int, _Instance] = {}
        self.children: dict[int, set[int]] = {}
        self.waiting: Counter[tuple[int, str]] = Counter()
        """Tokens at joins, by scope and element."""

    def apply(self, record: records.AnyRecord) -> None:
        match record:
            case records.Passed(element=element, flows=flows):
                self.completed[element] += 1
                self.flows.update(flows)
            case records.Entered():
                self.instances[record.key] = _Instance(record.element, record.scope)
                self.children.setdefault(record.scope, set()).add(record.key)
            case records.Left(key=key, flows=flows):
                if (left := self.instances.get(key)) is not None and not left.is_body:
                    self.completed[left.element] += 1
                self.flows.update(flows)
                self._remove(key)
            case records.Flowed(flows=flows):
                self.flows.update(flows)
            case records.Ended(key=key):
                self._remove(key)
            case records.Arrived(element=element, scope=scope):
                self.waiting[scope, element] += 1
            case records.Joined(element=element, scope=scope):
                self.waiting[scope, element] -= len(record.taken)
                self.completed[element] += 1
                self.flows.update(record.flows)
            case records.Cleared(scope=scope):
                self._clear(scope)
            case records.Looped() | records.Incident() | records.Resolved():
                self._note(record)
            case _:
                pass  # variables, waits and what is for people alone

    def _note(self, record: records.Looped | records.Incident | records.Resolved) -> None:
        """Keep what is said of an instance that goes on."""
        found = self.instances.get(record.key)
        if found is None:
            return
        match record:
            case records.Looped():
                found.is_body = record.total > 0
            case records.Incident():
                found.incidents.add(record.number)
            case records.Resolved():
                found.incidents.discard(record.number)

    def _remove(self, key: int) -> None:
        """Remove an instance with all that is in it."""
        pending = [key]
        while pending:
            one = pending.pop()
            pending.extend(self.children.pop(one, ()))
            self._clear(one)
            gone = self.instances.pop(one, None)
            if gone is not None and gone.scope in self.children:
                self.children[gone.scope].discard(one)

    def _clear(self, scope: int) -> None:
        for place in [place for place in self.waiting if place[0] == scope]:
            del self.waiting[place]

    def count_active(self) -> Counter[str]:
        """Where tokens are; the process itself is left out."""
        found = Counter(one.element for one in self.instances.values() if one.scope and not one.is_body)
        for (_, element), count in self.waiting.items():
            found[element] += max(0, count)
        return +found

    def count_incidents(self) -> Counter[str]:
        """How many incidents are open at each element."""
        found: Counter[str] = Counter()
        for one in self.instances.values():
            found[one.element] += len(one.incidents)
        return +found
