"""How signatures of what starts workflows name a workflow, so that type checkers compare its parameters with arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar, TypeVarTuple, Unpack

from holdfast.code.context import Context
from holdfast.code.definitions import Decorated

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

WorkflowTaking: TypeAlias = Callable[[Context | Decorated, Unpack[Ts]], Awaitable[R]]
"""A workflow that can be called with arguments of these types, by position, and has a result of the last type.

A `Callable`, since parameters with defaults may be left out then; with `Decorated`, which only `Workflow` takes in place of
a context, so that a function without the decorator does not fit.
"""
