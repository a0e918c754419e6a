"""Workflows and activities of modules that are named on the command line."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.activities.definitions import Activity
    from holdfast.code.definitions import Workflow


def load_module(name: str) -> ModuleType:
    """A module, which is looked for from here. Raises ClickException, whatever its code raises."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(name)
    except Exception as error:
        what = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise click.ClickException(
            f"Expected to import module '{name}', but {what}. Run the command where `python -c 'import {name}'` works."
        ) from error


def find_workflows(name: str) -> list[Workflow[..., Any]]:
    """Every workflow that a module defines or imports, the module being looked for from here."""
    from holdfast.code.definitions import Workflow

    module = load_module(name)
    found = [value for value in vars(module).values() if isinstance(value, Workflow)]
    if not found:
        raise click.ClickException(
            f"Expected module '{name}' to define workflows, but it has none. Name the module with the decorated functions."
        )
    return found


def find_code(names: Iterable[str]) -> tuple[list[Workflow[..., Any]], list[Activity[..., Any]]]:
    """All workflows and activities that modules define or import, each once. There need not be any."""
    from holdfast.activities.definitions import Activity
    from holdfast.code.definitions import Workflow

    found = {id(value): value for name in names for value in vars(load_module(name)).values()}
    workflows = [one for one in found.values() if isinstance(one, Workflow)]
    return workflows, [one for one in found.values() if isinstance(one, Activity)]
