"""What workflows catch from children, signals to others and side effects."""

from __future__ import annotations

from holdfast.errors.roots import StepError


class ChildWorkflowFailed(StepError):
    """The child ended without a result. Raised, or given as a value where `propagate_child_failures` is False."""


class ChildWorkflowCancelled(ChildWorkflowFailed):
    """The child ended without a result, because it was cancelled."""


class ChildWorkflowTerminated(ChildWorkflowFailed):
    """The child ended without a result, because it was terminated; its code had no say."""


class ExternalSignalFailed(StepError):
    """The signal to another workflow was refused."""


class SideEffectFailed(StepError):
    """The function of a side effect raised."""
