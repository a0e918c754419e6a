"""What the engine knows of a workflow, whatever it is written in: the seam between a catalog and its definitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.core.input_schemas import InputSchema
    from holdfast.core.payloads import Payload
    from holdfast.core.program import Program
    from holdfast.core.program_limits import ProgramLimits
    from holdfast.core.publications import StartTrigger
    from holdfast.core.retry import RetryPolicy


class Definition(Protocol):
    """One version of a workflow: makes the programs of its executions. It never changes once a catalog has it."""

    @property
    def name(self) -> str:
        """How starts, histories and other programs refer to the workflow."""
        ...

    @property
    def version(self) -> str:
        """This version's name among those of the workflow; empty if it has none."""
        ...

    @property
    def kind(self) -> str:
        """What the workflow is written in: 'code' for async functions."""
        ...

    @property
    def org(self) -> str | None:
        """The organisation whose workflow this is; None: every organisation has it."""
        ...

    @property
    def route_name(self) -> str:
        """What stands for the workflow in the routes of its executions, as in `Start`; empty: its name."""
        ...

    @property
    def is_pinned(self) -> bool:
        """Whether executions that this version begins stay with it. Else the newest version goes on with them."""
        ...

    @property
    def result_hint(self) -> Any:
        """The type as which callers get the result of an execution."""
        ...

    @property
    def retry(self) -> RetryPolicy | None:
        """How failed runs are retried, where a start does not say; None: they are not."""
        ...

    @property
    def input_schema(self) -> InputSchema | None:
        """What a start takes, to be announced to callers without the code; None if that cannot be told."""
        ...

    @property
    def parameters(self) -> Collection[str]:
        """The names of the arguments that a start takes; empty if they are not known here."""
        ...

    @property
    def starts_on(self) -> Sequence[StartTrigger]:
        """What starts the workflow beside a call: messages and broadcast signals."""
        ...

    def routes(self, queue: str) -> Sequence[str]:
        """Every route by which starts and executions on a queue come to a node that has this version."""
        ...

    def prepare(self) -> None:
        """Make the definition ready for use; a catalog calls this before it takes it. Raises InvalidDefinition."""
        ...

    def is_same_as(self, other: Definition) -> bool:
        """Whether another definition would do exactly the same: then either may stand for both."""
        ...

    def encode_input(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> Payload:
        """The arguments of a start as history records them, of at most `limit` bytes.

        Raises InvalidArguments, EncodingError or PayloadTooLarge, each naming the parameter.
        """
        ...

    def make_program(self, execution: Execution, limits: ProgramLimits) -> Program:
        """The program of an execution before its first event, which keeps within these limits."""
        ...

    def describe(self) -> str:
        """The definition in words that lead a person to its source, for messages."""
        ...
