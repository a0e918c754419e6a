"""One advance of a process: tokens move until nothing can, and records and commands come out.

Theory of operation
-------------------
`Run` is what handlers work with: the state, which changes only by the records that they emit, and the tokens on their way.
Tokens are taken first in, first out. Each is given to the handler of its element, which evaluates everything that the
element needs before it emits its first record: what fails leaves nothing half done, and becomes an incident. A scope whose
last token or child goes is noted, and completes before the next token moves.

After many records the run keeps the tokens that are left and sets a timer that is due at once: so endless loops and huge
multi-instance activities hold up nobody else, and can be cancelled.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.bpmn import records
from holdfast.bpmn.evolve import apply_record
from holdfast.bpmn.expressions import Evaluator
from holdfast.bpmn.state import ROOT, SIGNAL, Instance, State, Token
from holdfast.bpmn.values import Variable, to_raws
from holdfast.bpmn.variables import Changes, View, look_from
from holdfast.core import commands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.bpmn.executable import CompiledProcess, Container, Node
    from holdfast.bpmn.linked import LinkedResources
    from holdfast.core.instants import Instant
    from holdfast.core.program_limits import ProgramLimits

MOST_RECORDS: Final = 1_000
"""After so many records a turn has done enough."""
MOST_BYTES: Final = 1_000_000
"""After so many bytes of values a turn has done enough."""
MOST_STEPS: Final = 300_000
"""After so many steps of expressions a turn has done enough: a fraction of a second."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What one execution of a process runs with, from its beginning to its end."""

    process: CompiledProcess
    org: str
    execution_id: str
    limits: ProgramLimits
    linked: LinkedResources


@dataclass(frozen=True, slots=True)
class Place:
    """Where an element is entered: in which scope, by which flow, and as which iteration with its own variables."""

    scope: int
    flow: str = ""
    index: int = -1
    variables: dict[str, Variable] | None = None
    key: int = 0
    """The instance that tried to enter before, and goes on; 0: there is none."""

    def within(self, own: dict[str, Variable] | None) -> Place:
        """The same place, where the element has these variables of its own, too."""
        return Place(self.scope, self.flow, self.index, {**(self.variables or {}), **own}, self.key) if own else self


class Run:
    """One advance of one execution: what handlers work with."""

    def __init__(self, setting: Setting, state: State, now: Instant) -> None:
        self.setting = setting
        self.process: CompiledProcess = setting.process
        self.state = state
        self.now = now
        self.evaluator = Evaluator(f"{setting.execution_id}:{state.advances}", now, setting.limits.payload_bytes)
        self.records: list[records.AnyRecord] = []
        self.commands: list[commands.AnyCommand] = []
        self.queue: deque[Token] = deque(state.kept)
        self.thrown: list[tuple[commands.Broadcast, Sequence[int]]] = []
        """Signals that this execution threw, each with its own waits that were open then and have not been given it yet."""
        self.touched: list[int] = []
        """Scopes that may be done."""
        self.stuck: dict[int, None] = {}
        """Scopes in which nothing but tokens at joins was seen."""
        self.is_over = False
        """Whether the execution ends with this."""
        self._tokens: dict[int, int] = {}
        """How many tokens of the queue each scope has."""
        self._bytes = 0
        for token in self.queue:
            self._tokens[token[0]] = self._tokens.get(token[0], 0) + 1

    # --- what comes out ---

    def emit(self, record: records.AnyRecord) -> None:
        """Note what happened: the state changes by it."""
        self.records.append(record)
        apply_record(self.state, record)

    def issue(self, command: commands.AnyCommand) -> None:
        """Ask for something. A thrown signal is for the waits of this execution first, see `moving`."""
        self.commands.append(command)
        if type(command) is commands.Broadcast:
            self.thrown.append((command, self.state.find_named(command.name, "broadcast")))

    def next_number(self) -> int:
        """The number of the next command."""
        self.state.last_number += 1
        return self.state.last_number

    @property
    def is_full(self) -> bool:
        """Whether the turn has done enough."""
        return len(self.records) >= MOST_RECORDS or self._bytes >= MOST_BYTES or self.evaluator.steps >= MOST_STEPS

    def count_bytes(self, size: int) -> None:
        """Note that values of so many bytes are recorded by this turn."""
        self._bytes += size

    # --- variables ---

    def look(self, key: int, changes: Changes | None = None) -> View:
        """The variables that are visible from an instance."""
        return look_from(self.state, key, changes)

    def set_variables(self, changes: Changes, gone: int = 0) -> None:
        """Change variables of scopes; those of the scope `gone`, which is about to end, are left out."""
        for key, variables in changes.items():
            if key != gone and variables:
                self._bytes += sum(len(value.raw) for value in variables.values())
                self.emit(records.Set(key, to_raws(variables)))

    # --- tokens ---

    def push(self, scope: int, what: str, id_: str) -> None:
        """Send a token on its way within a scope."""
        self.queue.append((scope, what, id_))
        self._tokens[scope] = self._tokens.get(scope, 0) + 1

    def pop(self) -> Token:
        """Take the token that has waited for longest."""
        token = self.queue.popleft()
        self._tokens[token[0]] -= 1
        self.touched.append(token[0])
        return token

    def skip_lost(self) -> None:
        """Forget the next tokens whose scopes have ended: so ending a scope need not look for them."""
        while self.queue and self.queue[0][0] not in self.state.active:
            self.queue.popleft()

    def drop_tokens(self, scope: int) -> None:
        """Remove the tokens that are on their way within a scope that goes on."""
        if self._tokens.get(scope):
            self.queue = deque(token for token in self.queue if token[0] != scope or token[1] == SIGNAL)
            self._tokens[scope] = sum(token[0] == scope for token in self.queue)

    def has_tokens(self, scope: int) -> bool:
        """Whether tokens are on their way within a scope."""
        return bool(self._tokens.get(scope))

    # --- instances ---

    def node_of(self, one: Instance) -> Node:
        """The element of an instance that is not the process itself."""
        return self.process.nodes[one.element]

    def container_of(self, one: Instance) -> Container | None:
        """What is inside of an instance, if it is a container that runs: not for the body of a multi-instance activity."""
        if one.key == ROOT:
            return self.process.container
        return None if one.loop is not None else self.node_of(one).inner

    def begin(self, node: Node, place: Place, phase: str, own: dict[str, Variable] | None = None) -> Instance:
        """Begin an instance of an element, or go on with the one that failed to enter."""
        variables = own if not place.variables else {**place.variables, **(own or {})}
        raws = None if variables is None else to_raws(variables)
        if variables:
            self._bytes += sum(len(value.raw) for value in variables.values())
        if place.key:
            self.emit(records.Began(place.key, raws))
            return self.state.active[place.key]
        key = self.state.last_key + 1
        self.emit(records.Entered(key, node.id, place.scope, phase, raws, place.index))
        return self.state.active[key]
