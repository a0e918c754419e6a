"""Engines and clients have the same verbs, with the same parameters."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import Client, Engine, SyncClient
from holdfast.client.socket_verbs import SocketVerbs
from holdfast.engine.verbs import Verbs

ROOT: Final = Path(__file__).resolve().parents[2]
VERBS = sorted(name for name, one in inspect.getmembers(Verbs, inspect.isfunction) if not name.startswith("_"))
KEYED = sorted(name for name in VERBS if "request_id" in inspect.signature(getattr(Verbs, name)).parameters)
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


@pytest.mark.parametrize("cls", [Client, SocketVerbs])
@pytest.mark.parametrize("name", VERBS)
def test_clients_have_each_verb_as_the_protocol_says(cls: type, name: str) -> None:
    asked, given = getattr(Verbs, name), getattr(cls, name)

    assert read_parameters(given) == read_parameters(asked)
    assert inspect.iscoroutinefunction(given) == inspect.iscoroutinefunction(asked)


@pytest.mark.parametrize("name", VERBS)
def test_the_sync_client_has_each_verb_without_await(name: str) -> None:
    asked, given = read_parameters(getattr(Verbs, name)), read_parameters(getattr(SyncClient, name))

    assert given[:-1] == asked[:-1]
    assert given[-1][-1].removeprefix("Sync") == asked[-1][-1]
    assert not inspect.iscoroutinefunction(getattr(SyncClient, name))
    assert inspect.getdoc(getattr(SyncClient, name)) == inspect.getdoc(getattr(Verbs, name))


@pytest.mark.parametrize("name", KEYED)
def test_a_client_repeats_what_changes_something_only_with_a_request_id(name: str) -> None:
    source = inspect.getsource(getattr(Client, name))

    assert "is_safe=request_id is not None" in source or "key=request_id" in source


def test_what_follows_from_the_protocol_is_up_to_date() -> None:
    command = [sys.executable, "-m", "tools.facades", "--check"]

    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0, "run `python -m tools.facades`"


@pytest.mark.parametrize("name", VERBS)
def test_the_engine_has_each_verb_as_the_protocol_says(name: str) -> None:
    asked, given = getattr(Verbs, name), getattr(Engine, name)

    assert read_parameters(given) == read_parameters(asked)
    assert inspect.iscoroutinefunction(given) == inspect.iscoroutinefunction(asked)


def test_what_else_an_engine_can_do_is_known() -> None:
    methods = {name for name, one in vars(Engine).items() if inspect.isfunction(one) and not name.startswith("_")}

    assert methods - set(VERBS) == ONLY_OF_ENGINES


def test_engines_and_clients_are_verbs_to_type_checkers() -> None:
    def as_verbs(one: Engine | Client | SocketVerbs) -> Verbs:
        return one  # mypy compares them

    assert as_verbs(Engine("memory://")) is not None
