"""Engines and clients have the same verbs, with the same parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Engine
from holdfast.engine.verbs import Verbs

VERBS = sorted(name for name, one in vars(Verbs).items() if inspect.isfunction(one) and not name.startswith("_"))
ONLY_OF_ENGINES = {
    "add_workflow",
    "export_executions",
    "import_executions",
    "open",
    "recover",
    "remove_workflow",
    "run_until_stopped",
    "shutdown",
    "stop",
    "transaction",
}


def read_parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any, Any]]:
    signature = inspect.signature(function)
    found = [(one.name, one.kind, one.default, one.annotation) for one in signature.parameters.values()]
    return [*found, ("return", None, None, signature.return_annotation)]


@pytest.mark.parametrize("name", VERBS)
def test_the_engine_has_each_verb_as_the_protocol_says(name: str) -> None:
    asked, given = getattr(Verbs, name), getattr(Engine, name)

    assert read_parameters(given) == read_parameters(asked)
    assert inspect.iscoroutinefunction(given) == inspect.iscoroutinefunction(asked)


def test_what_else_an_engine_can_do_is_known() -> None:
    methods = {name for name, one in vars(Engine).items() if inspect.isfunction(one) and not name.startswith("_")}

    assert methods - set(VERBS) == ONLY_OF_ENGINES


def test_engines_are_verbs_to_type_checkers() -> None:
    def as_verbs(engine: Engine) -> Verbs:
        return engine  # mypy compares the two

    assert as_verbs(Engine("memory://")) is not None
