"""Named behaviours: what an event means to executions that began after its meaning changed.

Theory of operation
-------------------
A history is replayed for as long as its execution is open, by whatever code runs then. So when code is to treat an event
otherwise from now on, old executions must not notice. The change gets a name, and the name goes into `PRESENT`. An
execution records the names that are present when it takes its first turn, in `WorkflowStarted.behaviours`, and keeps exactly
those: the code asks what was *recorded*, never what is present.

    if "close-children-first" in execution.behaviours:   # in core: a turn has its execution, `turn.execution`
    if "close-children-first" in self.behaviours:        # in a program

An execution without the name takes the old way, on every replay; one with it the new way. A continued run is a new
execution and records anew. A name is never used for two things, and stays here, with both ways in the code, until no open
execution can be without it.

An execution that records a name which this code does not know was begun by a newer Holdfast. Its history cannot be
understood here, however well it decodes: `check_known` raises NewerFormat, and the node leaves the execution alone.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Final

from holdfast.errors import NewerFormat

WORK_KEYS: Final = "work-keys"
"""The idempotency keys and the results of activities say what was asked, by a digest: see `core.work_keys`."""

CHECKED_PAYLOADS: Final = "checked-payloads"
"""Code is refused values that would not come back as they were, and results that do not fit their hint: see
`core.type_checks`."""
CHECKED_WAITS: Final = "checked-waits"
"""Code is refused waits and forms of a type that no value can be read as: see `core.signatures.check_hint`."""
CHILD_VALUES: Final = "child-values"
"""The end of a child without a result may be a value to the code that awaits it: `ChildStarted.failure_as_value`."""
HEADERS: Final = "headers"
"""The execution hands headers on. Recorded only by executions that have some: a node that does not know headers would drop
them."""
BUSINESS_REFERENCE: Final = "business-reference"
"""The execution has a business reference, which it hands on. Recorded only by executions that have one: a node that does not
know references would not hand it on."""
KEPT_VIOLATIONS: Final = "kept-violations"
"""What the guard refused stops the execution, whatever its code did about the exception: see `code.guard`."""
STRICT_ARGUMENTS: Final = "strict-arguments"
"""Code is refused what `checked-payloads` let through: keyword-only parameters by position, keywords that may be an option
or an argument, entries of a dict that have one key in JSON, and tags of another class (see `core.payloads.Strictness`). It
may name arguments of what it calls by name."""
TIMER_INSTANTS: Final = "timer-instants"
"""The value of a timer in `wait_any` is the time at which it fired; before, it was None."""
TYPED_FAILURES: Final = "typed-failures"
"""What an activity or a child raised is caught by its own class too, and has a cause: see `core.rebuilt_errors`."""

PRESENT: tuple[str, ...] = (
    CHECKED_PAYLOADS,
    CHECKED_WAITS,
    CHILD_VALUES,
    KEPT_VIOLATIONS,
    STRICT_ARGUMENTS,
    TIMER_INSTANTS,
    TYPED_FAILURES,
    WORK_KEYS,
)
"""The behaviours that executions record which begin now, sorted."""
OCCASIONAL: Final = frozenset({BUSINESS_REFERENCE, HEADERS})
"""The behaviours that only those of them record which need them."""


@lru_cache(maxsize=100)
def as_set(recorded: tuple[str, ...]) -> frozenset[str]:
    """The behaviours that an execution records, as one set for all executions that record the same."""
    return frozenset(recorded)


def check_known(recorded: Collection[str]) -> None:
    """Raises NewerFormat if an execution records a behaviour that this code does not have."""
    unknown = sorted(set(recorded).difference(PRESENT, OCCASIONAL))
    if unknown:
        raise NewerFormat(
            f"Expected to know every behaviour that an execution records, but a newer Holdfast began it with "
            f"{', '.join(map(repr, unknown))}. Upgrade this node; nodes that can read it go on."
        )
