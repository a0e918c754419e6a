"""One version of a deployed process as a definition: what starts need is in its row, what programs need is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.routes import PROCESS_ROUTE_NAME, make_route
from holdfast.engine.processes.known_definitions import read_details
from holdfast.engine.processes.variables import encode_variables
from holdfast.errors import ProcessNotStartable

if TYPE_CHECKING:
    from holdfast.bpmn.linked import LinkedResources
    from holdfast.core.definition import Definition
    from holdfast.core.execution import Execution
    from holdfast.core.payloads import Payload
    from holdfast.core.program import Program
    from holdfast.core.program_limits import ProgramLimits
    from holdfast.engine.processes.compiling import CompiledContent
    from holdfast.engine.processes.known_definitions import DefinitionDetails
    from holdfast.store.definitions import DefinitionRow


class ProcessDefinition:
    """A version of a deployed process. It is a `holdfast.core.definition.Definition`, one object while it is known."""

    kind: Final = "bpmn"
    route_name: Final = PROCESS_ROUTE_NAME
    is_pinned: Final = True
    result_hint: Final[Any] = dict[str, Any]
    retry: Final = None
    input_schema: Final = None
    parameters: Final[Sequence[str]] = ()
    starts_on: Final = ()

    def __init__(
        self, row: DefinitionRow, find_content: Callable[[ProcessDefinition], tuple[CompiledContent, LinkedResources] | None]
    ) -> None:
        self.name = row.definition_id
        self.version = str(row.version)
        self.org: str | None = row.org
        self.digest = row.digest
        self.deployment = row.deployment
        self.details: DefinitionDetails = read_details(row)
        self._find_content = find_content

    def routes(self, queue: str) -> Sequence[str]:
        """The route by which starts and executions on a queue come to every node that can interpret processes."""
        return (make_route(queue, PROCESS_ROUTE_NAME),)

    def prepare(self) -> None:
        """There is nothing to prepare: it was checked when it was deployed."""

    def is_same_as(self, other: Definition) -> bool:
        """Whether another definition is the same version of the same process."""
        return other is self

    def encode_input(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> Payload:
        """The variables of a start: one dictionary, or keyword arguments. Raises InvalidArguments or ProcessNotStartable."""
        if not self.details.has_none_start:
            raise ProcessNotStartable(
                f"Expected process '{self.name}' to have a start event without a trigger, but version {self.version} is "
                "only started by what its start events wait for. Publish that, or add a plain start event.",
                workflow=self.name,
                version=self.version,
            )
        return encode_variables(self.name, args, kwargs, limit)

    def make_program(self, execution: Execution, limits: ProgramLimits) -> Program:
        """The program of an execution before its first event. Raises ProcessNotStartable if it is not compiled."""
        content = self._find_content(self)
        if content is None:
            raise ProcessNotStartable(
                f"Expected process '{self.name}' version {self.version} to be compiled here, but it is not yet. Try again.",
                workflow=self.name,
                version=self.version,
            )
        from holdfast.bpmn.program import ProcessProgram  # noqa: PLC0415

        compiled, linked = content
        return ProcessProgram(self, compiled.process, execution, limits, linked)

    def describe(self) -> str:
        """The process in words that lead to its file."""
        file = f" of {self.details.file}" if self.details.file else ""
        return f"process '{self.name}' version {self.version}{file}"

    def __repr__(self) -> str:
        return f"<{self.describe()}>"
