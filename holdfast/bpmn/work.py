"""What elements do, compiled: a value for each kind of work. Jobs are `executable.CompiledJob`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Text
    from holdfast.bpmn.model import Binding


@dataclass(frozen=True, slots=True)
class PassWork:
    """Nothing is done: a token passes."""


@dataclass(frozen=True, slots=True)
class ScriptWork:
    """A FEEL script, and the variable that takes its value; without one, a context is merged by its names."""

    expression: Text
    result_variable: str


@dataclass(frozen=True, slots=True)
class DecisionWork:
    """A decision to be made by a deployed decision model."""

    decision: Text
    result_variable: str
    binding: Binding
    version_tag: str


@dataclass(frozen=True, slots=True)
class CallWork:
    """A process or code workflow to be called."""

    process: Text
    binding: Binding
    version_tag: str
    propagates_all_parent_variables: bool
    propagates_all_child_variables: bool


@dataclass(frozen=True, slots=True)
class AssignmentWork:
    """Who does a user task, and when."""

    assignee: Text | None
    groups: Text | None
    users: Text | None
    due_date: Text | None
    follow_up_date: Text | None
    priority: Text | None


@dataclass(frozen=True, slots=True)
class UserWork:
    """A human task, and the form that the person fills in."""

    assignment: AssignmentWork
    form_id: str
    form_key: str
    embedded_form: str


@dataclass(frozen=True, slots=True)
class MessageWork:
    """A message to be published; without a key its key is the workflow id."""

    name: Text
    key: Text | None


@dataclass(frozen=True, slots=True)
class SignalWork:
    """A broadcast signal to be thrown."""

    name: Text


@dataclass(frozen=True, slots=True)
class ErrorWork:
    """An error to be thrown, by its code."""

    code: str
    name: str


@dataclass(frozen=True, slots=True)
class EscalationWork:
    """An escalation to be thrown, by its code."""

    code: str


@dataclass(frozen=True, slots=True)
class TerminateWork:
    """Everything else in the scope is to end."""


@dataclass(frozen=True, slots=True)
class LinkWork:
    """The token goes on at the catching link event of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class CatchWork:
    """Something is awaited: a timer, a message or a broadcast signal."""


@dataclass(frozen=True, slots=True)
class SubProcessWork:
    """What is inside of the sub-process runs."""


@dataclass(frozen=True, slots=True)
class ExclusiveWork:
    """One of the outgoing flows is taken."""


@dataclass(frozen=True, slots=True)
class ParallelWork:
    """A token from each incoming flow becomes a token on each outgoing one."""


@dataclass(frozen=True, slots=True)
class EventBasedWork:
    """The first of several events decides which flow is taken."""
