"""Workflows as a client knows them: by their names alone, or by functions that other processes run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.code.definitions import Workflow
from holdfast.core import payloads
from holdfast.core.ids import DEFAULT_ORG, check_identifier
from holdfast.core.input_schemas import InputSchema
from holdfast.core.payloads import Payload
from holdfast.core.retry import RetryPolicy
from holdfast.core.routes import make_route
from holdfast.engine.catalog import Catalog
from holdfast.errors import InvalidArguments, UnknownWorkflow

if TYPE_CHECKING:
    from holdfast.core.definition import Definition
    from holdfast.core.execution import Execution
    from holdfast.core.program import Program
    from holdfast.core.program_limits import ProgramLimits


class NamedWorkflow:
    """A workflow whose code is elsewhere: a definition that can be started, and makes no programs.

    With its function at hand, arguments are checked by its hints and the result has its type.
    """

    kind = "named"
    org: str | None = None
    is_pinned = False
    retry: RetryPolicy | None = None
    input_schema: InputSchema | None = None

    def __init__(self, name: str, version: str = "", function: Workflow[..., Any] | None = None) -> None:
        self.name = name
        self.version = version
        self._function = function

    @property
    def result_hint(self) -> Any:
        """The type of the result, by the function's return hint; any JSON value where only the name is known."""
        return Any if self._function is None else self._function.result_hint

    def encode_input(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> Payload:
        """The arguments of a start as history records them. Raises InvalidArguments, EncodingError or PayloadTooLarge."""
        if self._function is not None:
            return self._function.encode_input(args, kwargs, limit)
        if kwargs:
            raise InvalidArguments(
                f"Expected the arguments of workflow '{self.name}' by position, since its parameters are not known here, "
                f"but got {', '.join(sorted(kwargs))} by name. Pass them by position, or start it by its function."
            )
        return payloads.encode(list(args), f"the arguments of workflow '{self.name}'", limit)

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
    """The catalog of a client: it has no code, and finds every workflow by its name."""

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
        return NamedWorkflow(check_identifier(workflow, "the name of a workflow"), version or "")
