"""How a built-in function is declared: its forms, each with named and typed parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter. `type` is a name from `types.ACCEPTS`; with a `?` behind it, null is welcome too."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Form:
    """One way to call a function: `call(run, *arguments)`, with those that are left out left out.

    `call` is given arguments of the declared types, in the form that `values` describes, and returns a value; it raises Fail
    where there is none, and calls `run.spend(n)` before it looks at n items.
    """

    call: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    required: int
    is_variadic: bool = False
    """Whether the last parameter takes all that follow: `sum(1, 2, 3)`. A single list is taken for its items."""
    numbered: str = ""
    """What its variadic arguments are called by name, each with its number behind it: `min(c1: 3, c2: 1)`."""
    takes_anything: bool = False
    """Whether there is nothing to be said against any arguments: that is its only parameter, of any type."""


def form(
    call: Callable[..., Any],
    *parameters: tuple[str, str],
    required: int | None = None,
    is_variadic: bool = False,
    numbered: str = "",
) -> Form:
    """A form; all its parameters are required unless told otherwise. `numbered` is another name for variadic arguments."""
    named = tuple(Parameter(name, type_name) for name, type_name in parameters)
    takes_anything = is_variadic and len(named) == 1 and named[0].type == "any?"
    numbered = numbered or (named[-1].name if is_variadic else "")
    return Form(call, named, len(named) if required is None else required, is_variadic, numbered, takes_anything)
