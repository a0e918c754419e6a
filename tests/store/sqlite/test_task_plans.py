"""Lists of human tasks walk along an index, in its order: none sorts, none reads a whole table."""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from typing import Any

import pytest

from holdfast.store.sqlite.tasks import prepare_list
from holdfast.store.tasks import TaskFilter, TaskOrder, TaskState


@pytest.mark.parametrize(
    ("conditions", "index"),
    [
        ({}, "tasks_open"),
        ({"states": tuple(TaskState)}, "tasks_by_org"),
        ({"order": TaskOrder.DUE, "due_before": 9}, "tasks_open_by_due"),
        ({"assignee": "ann"}, "task_keys_open"),
        ({"group": "managers"}, "task_keys_open"),
        ({"business_key": "order-7"}, "task_keys_open"),
        ({"group": "managers", "order": TaskOrder.DUE}, "task_keys_open_by_due"),
    ],
)
def test_list_of_tasks_walks_along_its_index(conditions: dict[str, Any], index: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(files("holdfast.store.sqlite").joinpath("schema.sql").read_text("utf-8"))
    statement, values = prepare_list(TaskFilter("default", **conditions))

    steps = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    assert f"INDEX {index} (" in steps[0], steps
    tables = [step for step in steps if "json_each" not in step]
    assert not [step for step in tables if step.startswith("SCAN") or "TEMP B-TREE" in step], steps
