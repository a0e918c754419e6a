"""Containers that few executions need are shared while they are empty, and nobody can change the shared ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core import envelopes
from holdfast.core.effects import Limits, Turn
from holdfast.core.execution import Execution
from holdfast.core.payloads import NULL
from holdfast.core.unused import NO_ENTRIES, NO_ITEMS, add, put


def test_what_is_added_first_makes_a_container_of_its_own() -> None:
    items, entries = add(NO_ITEMS, (1,)), put(NO_ENTRIES, "a", 1)

    assert (add(items, (2, 3)), put(entries, "b", 2)) == ([1, 2, 3], {"a": 1, "b": 2})
    assert (items, entries) == ([1, 2, 3], {"a": 1, "b": 2}), "the same ones have grown"
    assert (NO_ITEMS, NO_ENTRIES) == ([], {})


@pytest.mark.parametrize(
    "change",
    [
        lambda: NO_ITEMS.append(1),
        lambda: NO_ITEMS.extend([1]),
        lambda: NO_ITEMS.insert(0, 1),
        lambda: NO_ITEMS.__iadd__([1]),
        lambda: NO_ENTRIES.__setitem__("a", 1),
        lambda: NO_ENTRIES.setdefault("a", 1),
        lambda: NO_ENTRIES.update(a=1),
        lambda: NO_ENTRIES.__ior__({"a": 1}),
    ],
)
def test_shared_ones_cannot_be_changed(change: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="the shared one"):
        change()

    assert (NO_ITEMS, NO_ENTRIES) == ([], {})


def test_an_execution_that_uses_none_has_none_of_its_own() -> None:
    start = envelopes.Start(execution_id="e", workflow_id="w", workflow="order", input=NULL)
    execution = Execution.register("default", start, 100)
    turn = Turn(execution, 1, Limits())

    entries: list[object] = [execution.subscriptions, execution.publications, execution.tasks, execution.updates]
    items: list[object] = [turn.subscribed, turn.publications, turn.task_changes, turn.replies]
    assert all(one is NO_ENTRIES for one in entries)
    assert all(one is NO_ITEMS for one in items)
