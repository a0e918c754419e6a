"""Workflows as a client knows them: by their names alone, or by functions that other processes run."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from holdfast.code.definitions import Workflow
from holdfast.core.ids import DEFAULT_ORG, check_identifier
from holdfast.core.input_schemas import InputSchema
from holdfast.core.payloads import Payload
from holdfast.core.retry import RetryPolicy
from holdfast.core.routes import make_route
from holdfast.engine.catalog import Catalog
from holdfast.engine.nodes.input_schemas import InputChecker, encode_arguments, list_announcing, make_checkers
from holdfast.errors import UnknownWorkflow

if TYPE_CHECKING:
    from holdfast.core.definition import Definition
    from holdfast.core.execution import Execution
    from holdfast.core.program import Program
    from holdfast.core.program_limits import ProgramLimits
    from holdfast.engine.clock import Clock
    from holdfast.engine.processes.deployed_processes import DeployedProcesses
    from holdfast.store.contract import Store

LEARNT_FOR: Final = 5.0
"""Seconds for which arguments are accepted by what nodes announced then. They are refused only by what they announce now."""
_MOST_LEARNT: Final = 1_000


class NamedWorkflow:
    """A workflow whose code is elsewhere: a definition that can be started, and makes no programs.

    With its function at hand, arguments are checked by its hints and the result has its type; without it, by the input
    schemas that nodes announce.
    """

    kind = "named"
    org: str | None = None
    route_name = ""
    is_pinned = False
    retry: RetryPolicy | None = None
    starts_on = ()
    input_schema: InputSchema | None = None

    def __init__(
        self,
        name: str,
        version: str = "",
        function: Workflow[..., Any] | None = None,
        checkers: Sequence[InputChecker] = (),
    ) -> None:
        self.name = name
        self.version = version
        self._function = function
        self._checkers = checkers

    @property
    def result_hint(self) -> Any:
        """The type of the result, by the function's return hint; any JSON value where only the name is known."""
        return Any if self._function is None else self._function.result_hint

    @property
    def parameters(self) -> Collection[str]:
        """The names of the arguments that a start takes, by its function or by what nodes announce."""
        if self._function is not None:
            return self._function.parameters
        return list(dict.fromkeys(one.name for checker in self._checkers for one in checker.schema.parameters))

    def encode_input(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> Payload:
        """The arguments of a start as history records them. Raises InvalidArguments, EncodingError or PayloadTooLarge."""
        if self._function is not None:
            return self._function.encode_input(args, kwargs, limit)
        return encode_arguments(self.name, self._checkers, (args, kwargs), limit)

    def routes(self, queue: str) -> Sequence[str]:
        """The route by which starts on a queue come to a node that has the workflow."""
        return (make_route(queue, self.name),)

    def prepare(self) -> None:
        """There is nothing to prepare: no code of it runs here."""

    def is_same_as(self, other: Definition) -> bool:
        """Whether another definition stands for the same workflow in the same version."""
        return isinstance(other, NamedWorkflow) and (other.name, other.version) == (self.name, self.version)

    def make_program(self, execution: Execution, limits: ProgramLimits) -> Program:
        """Always raises UnknownWorkflow: the code is elsewhere."""
        raise UnknownWorkflow(f"Expected a node to take the turns of workflow '{self.name}', but this is a client.")

    def describe(self) -> str:
        """The workflow in words, for messages."""
        return f"workflow '{self.name}', by its name alone" if self._function is None else self._function.describe()


class NamedWorkflows(Catalog):
    """The catalog of a client: it has no code, and finds every workflow by its name.

    What nodes announce of a workflow is `learn`ed before it is started by its name, and believed for `LEARNT_FOR` seconds.
    """

    def __init__(self, processes: DeployedProcesses) -> None:
        super().__init__(processes=processes)
        self._learnt: dict[tuple[str, str | None], tuple[float, list[InputChecker]]] = {}
        self._unannounced: dict[str, list[str]] = {}
        """Workflows that nobody announces, each with the names that resemble it, until they were told of."""
        self._told: set[str] = set()

    async def learn(self, store: Store, clock: Clock, workflow: str, version: str | None, *, anew: bool = False) -> bool:
        """Ask which input schemas nodes announce of a workflow, unless that is known; whether the store was asked."""
        if version is not None:
            check_identifier(version, "the version of a workflow")
        found = self._learnt.get((workflow, version))
        if found is not None and not anew and time.monotonic() < found[0]:
            return False
        check_identifier(workflow, "the name of a workflow")
        announcing = await list_announcing(store, clock.now())
        checkers = await make_checkers(store, announcing, workflow, version)
        if announcing or not store.exclusive:
            self._note_known(workflow, sorted({name for one in announcing for name in one.workflows}))
        if len(self._learnt) >= _MOST_LEARNT:
            self._learnt.clear()
        self._learnt[workflow, version] = time.monotonic() + LEARNT_FOR, checkers
        return True

    @property
    def route_names(self) -> Sequence[str]:
        """None: a client interprets no processes."""
        return ()

    async def learn_processes(self, workflow: str) -> None:
        """Read what is deployed, unless living nodes announce the name as that of a code workflow. Raises StoreError."""
        announced = any(checkers for (name, _), (_, checkers) in self._learnt.items() if name == workflow)
        if self.processes is not None and not announced:
            await self.processes.refresh()
            if workflow in self.processes.list_names():
                self._unannounced.pop(workflow, None)

    def take_unknown(self, workflow: str) -> list[str] | None:
        """Of a workflow that no living node announces: the nearest names that are announced. None if it is, or was told."""
        return self._unannounced.pop(workflow, None)

    def _note_known(self, workflow: str, names: Sequence[str]) -> None:
        if workflow in names:
            self._told.discard(workflow)
            self._unannounced.pop(workflow, None)
        elif workflow not in self._told and len(self._told) < _MOST_LEARNT:
            self._told.add(workflow)
            self._unannounced[workflow] = get_close_matches(workflow, names, 3)

    def find(self, workflow: Workflow[..., Any] | str, version: str | None = None, org: str = DEFAULT_ORG) -> Definition:
        """A workflow that some node has, or will have. Raises InvalidIdentifier, or UnknownWorkflow if it is no workflow."""
        if version is not None:
            check_identifier(version, "the version of a workflow")
        if isinstance(workflow, Workflow):
            return NamedWorkflow(workflow.name, workflow.version if version is None else version, workflow)
        if not isinstance(workflow, str):
            raise UnknownWorkflow(
                f"Expected a workflow or the name of one, but got {getattr(workflow, '__name__', workflow)!r}. Decorate it "
                "with @workflow, or pass its name."
            )
        if (process := self._find_process(workflow, version, org)) is not None:
            return process
        _, checkers = self._learnt.get((workflow, version), (0.0, ()))
        return NamedWorkflow(check_identifier(workflow, "the name of a workflow"), version or "", checkers=checkers)
