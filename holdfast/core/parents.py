"""What an execution knows of the one that started it as a child."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.core.options import ParentClose

ALL_CODES: Final = ""
"""Stands for all codes among those that are caught around a child. Nothing that is caught by its code has this one."""


class Parent(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Who started an execution as a child, as which of its commands, and what is caught above it."""

    execution_id: str
    number: int
    policy: ParentClose = ParentClose.ABANDON
    depth: int = 0
    """How many calls led to the child that a process made or that called one: see `children.DEEPEST`."""
    catches: tuple[str, ...] = ()
    """The codes of the BPMN errors that its ancestors catch, ALL_CODES for all: any other is an incident where thrown."""
    catches_escalations: tuple[str, ...] = ()
    """The codes of the escalations that its ancestors catch, ALL_CODES for all: no other need be sent."""
    interrupting_escalations: tuple[str, ...] = ()
    """Those of them by which an ancestor ends it: it ends itself when it throws one of these, and does no work behind it."""
