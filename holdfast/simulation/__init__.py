"""Seeded random workflows under crashes, failed commits and lost wake-ups, in virtual time: `holdfast simulate`."""

from holdfast.errors import SimulationFailed
from holdfast.simulation.seeds import SimulationSummary, run

__all__ = ["SimulationFailed", "SimulationSummary", "run"]
