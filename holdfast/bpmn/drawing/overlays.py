"""What an execution has done so far, to be drawn over its diagram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """How often each element was completed and each flow was taken, where tokens are now, and what has open incidents.

    All by the ids of the file. Ids that it does not have are left out of the drawing.
    """

    taken_flows: Mapping[str, int] = field(default_factory=dict)
    completed: Mapping[str, int] = field(default_factory=dict)
    active: Mapping[str, int] = field(default_factory=dict)
    incidents: Mapping[str, int] = field(default_factory=dict)

    def describe(self) -> str:
        """The counts in one sentence, for those who do not see the drawing."""
        return (
            f"Execution: {sum(self.completed.values())} elements completed, {sum(self.taken_flows.values())} flows taken, "
            f"{sum(self.active.values())} active, {sum(self.incidents.values())} incidents."
        )

    def describe_element(self, id_: str) -> str:
        """What the execution did at one element; empty if nothing."""
        parts = [
            f"{count} {word}"
            for counts, word in (
                (self.taken_flows, "taken"),
                (self.completed, "completed"),
                (self.active, "active"),
                (self.incidents, "incidents"),
            )
            if (count := counts.get(id_, 0))
        ]
        return ", ".join(parts)
