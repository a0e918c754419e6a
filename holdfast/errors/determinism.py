"""Workflow code that a replay could not repeat, and simulated runs that differ."""

from __future__ import annotations

from holdfast.errors.roots import HoldfastError


class DeterminismError(HoldfastError):
    """Workflow code did something that a replay could not repeat."""


class NonDeterminismError(DeterminismError):
    """Replay issued another command than history records."""


class ForbiddenInWorkflow(DeterminismError):
    """Workflow code reached for a clock, a random source, a file, a socket, a process or a thread."""


class TurnTooLong(DeterminismError):
    """Workflow code did not come to rest within the bound of one turn."""


class TurnTooLarge(DeterminismError):
    """A turn would write more history than the engine's `max_turn_bytes` allows."""


class SimulationFailed(HoldfastError):
    """A simulated run did not end as the undisturbed one did; the message names the seed."""
