"""Workflows of modules that are named on the command line."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from holdfast.code.definitions import Workflow


def find_workflows(name: str) -> list[Workflow[..., Any]]:
    """Every workflow that a module defines or imports, the module being looked for from here."""
    from holdfast.code.definitions import Workflow

    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = import_module(name)
    except ImportError as error:
        raise click.ClickException(
            f"Expected to import module '{name}', but {error}. Run the command where `python -c 'import {name}'` works."
        ) from error
    found = [value for value in vars(module).values() if isinstance(value, Workflow)]
    if not found:
        raise click.ClickException(
            f"Expected module '{name}' to define workflows, but it has none. Name the module with the decorated functions."
        )
    return found
