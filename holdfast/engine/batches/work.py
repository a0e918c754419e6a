"""What a batch holds for one execution, while it is gathered and its turn is taken."""

from __future__ import annotations

from typing import Final

from holdfast.core.envelopes import AnyEnvelope, Start, Terminate
from holdfast.engine.batches.programs import Live
from holdfast.engine.batches.requests import Request

Source = Request | int | None
"""Where an envelope came from: a request of this node, an inbox row by its id, or a timer."""

_ENDING_RANKS: Final = {Start: 0, Terminate: 1}


class Work:
    """What a batch holds for one execution."""

    __slots__ = (
        "arrived",
        "ends",
        "execution_id",
        "generation",
        "live",
        "new",
        "org",
        "parent",
        "retaken",
        "runs_before",
        "sources",
    )

    def __init__(self, org: str, execution_id: str, new: Start | None = None) -> None:
        self.org = org
        self.execution_id = execution_id
        self.new = new
        """The start that makes it, if it does not exist yet."""
        self.live: Live | None = None
        self.arrived: list[AnyEnvelope] = []
        self.sources: list[Source] = []
        self.retaken = False
        self.runs_before = 0
        """How many runs it continues that began and ended in the same batch."""
        self.parent = ""
        """The execution that started it in the same batch: if that one's turn is lost, so is this one."""
        self.generation = 0
        """How many such parents it has, one above the other."""
        self.ends = False
        """Whether it is to be terminated without its program, which does not fit."""

    def add(self, envelope: AnyEnvelope, source: Source) -> None:
        """One more envelope for it."""
        self.arrived.append(envelope)
        self.sources.append(source)

    def add_first(self, envelope: AnyEnvelope, source: Source) -> None:
        """One that goes before all others."""
        self.arrived.insert(0, envelope)
        self.sources.insert(0, source)

    def put_terminate_first(self) -> bool:
        """For an execution without a program: an order to terminate goes before all but its start. Whether there is one."""
        order = sorted(range(len(self.arrived)), key=lambda index: _ENDING_RANKS.get(type(self.arrived[index]), 2))
        self.arrived = [self.arrived[index] for index in order]
        self.sources = [self.sources[index] for index in order]
        return any(type(envelope) is Terminate for envelope in self.arrived[:2])

    def unload(self) -> None:
        """Let go of its program: it is not needed, or of no use."""
        if self.live is not None:
            self.live.program.close()
            self.live = None

    def clear(self) -> None:
        """It takes nothing of what arrived."""
        self.arrived.clear()
        self.sources.clear()

    @property
    def requests(self) -> list[Request]:
        """This node's own among its sources."""
        return [source for source in self.sources if isinstance(source, Request)]

    @property
    def consumed(self) -> list[int]:
        """The inbox rows among its sources."""
        return [source for source in self.sources if type(source) is int]
