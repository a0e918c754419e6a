"""States and business references on the command line: given to starts, shown, filtered by and ordered by."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast import BusinessReference, Context, Engine, workflow
from holdfast.cli import main

Run = Callable[..., Result]


@workflow
async def claim(ctx: Context, amount: int) -> None:
    ctx.set_state(step="filed", amount=amount)
    await ctx.wait_for_signal("decide")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Calls a command on a database with three claims, each of its own amount and key."""
    path = tmp_path / "app.db"

    async def fill() -> None:
        async with Engine(f"sqlite:///{path}", workflows=[claim]) as engine:
            for number, amount in enumerate([120, 80, 4000]):
                reference = BusinessReference(f"2026-{number}", {"policy": "P-7" if number else "P-1"})
                await engine.start(claim, amount, workflow_id=f"c{number}", business_reference=reference)

    asyncio.run(fill())
    return lambda verb, *rest: CliRunner().invoke(main, [verb, str(path), *rest])


def list_ids(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.output
    return [one["workflow_id"] for one in json.loads(result.stdout)["executions"]]


def test_list_and_count_filter_and_order_by_state_and_reference(run: Run) -> None:
    large = run("list", "--where", "state.amount > 100", "--order-by", "state.amount desc", "--json")
    found = run("list", "--where", "reference.policy = 'P-7'", "--order-by", "reference", "--json")
    counted = run("count", "--where", "NOT state.step = 'filed' OR reference = '2026-0'", "--json")

    assert list_ids(large) == ["c2", "c0"]
    assert list_ids(found) == ["c1", "c2"]
    assert json.loads(counted.stdout)["total"] == 1


def test_pages_of_an_ordered_list_follow_each_other(run: Run) -> None:
    first = run("list", "--order-by", "state.amount", "--limit", "2", "--json")
    cursor = json.loads(first.stdout)["cursor"]
    second = run("list", "--order-by", "state.amount", "--limit", "2", "--cursor", cursor, "--json")
    every = run("list", "--order-by", "state.amount", "--limit", "1", "--all", "--json")

    assert list_ids(first) + list_ids(second) == ["c1", "c0", "c2"]
    assert [json.loads(line)["workflow_id"] for line in every.stdout.splitlines()] == ["c1", "c0", "c2"]


@pytest.mark.parametrize("options", [("--where", "state.amount >"), ("--order-by", "amount")])
def test_filter_or_order_that_does_not_parse_is_refused(run: Run, options: tuple[str, str]) -> None:
    refused = run("list", *options)

    assert refused.exit_code in (1, 2)
    assert "Expected" in refused.output


def test_state_and_reference_are_shown(run: Run) -> None:
    shown = run("show", "c1").output.replace(" ", "")

    assert "2026-1" in shown
    assert '"amount":80' in shown


@pytest.mark.parametrize(
    "verb",
    [("start", "claim", "7", "--id", "new"), ("signal-with-start", "new", "claim", "7", "--signal", "decide")],
)
async def test_reference_given_to_a_start_is_that_of_the_execution(tmp_path: Path, run: Run, verb: tuple[str, ...]) -> None:
    options = ("--business-reference", "2027-1", "--reference-part", "policy=P-9")
    begun = await asyncio.to_thread(run, verb[0], *verb[1:], *options)
    assert begun.exit_code == 0, begun.output

    async with Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[claim]) as engine:
        async with asyncio.timeout(20):
            while not (found := await engine.list(where="reference.policy = 'P-9'")):
                await asyncio.sleep(0.01)

    assert [(one.workflow_id, one.business_reference) for one in found] == [
        ("new", BusinessReference("2027-1", {"policy": "P-9"}))
    ]


def test_part_without_a_key_is_bad_usage(run: Run) -> None:
    refused = run("start", "claim", "7", "--reference-part", "policy=P-9")

    assert refused.exit_code == 2
    assert "--business-reference" in refused.output
