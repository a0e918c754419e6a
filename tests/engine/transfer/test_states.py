"""States and business references move with a whole database, and lists find them there as before."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

from click.testing import CliRunner

from holdfast import BusinessReference, Context, Engine, workflow
from holdfast.cli import main

ASKED = [
    ("state.amount > 100", "state.amount desc"),
    ("NOT state.step = 'paid'", "reference"),
    ("reference.policy = 'P-7' OR reference = '2026-0'", "state.step desc"),
    ("HAS state.amount", "closed"),
]


@workflow
async def claim(ctx: Context, amount: int) -> None:
    ctx.set_state(step="filed", amount=amount)
    ctx.set_state(step=await ctx.wait_for_signal("decide", str))


async def search(url: str) -> list[list[object]]:
    async with Engine(url, workflows=[claim]) as engine:
        pages = [await engine.list(where=where, order_by=order) for where, order in ASKED]
    return [[(one.execution_id, one.state, one.business_reference) for one in page] for page in pages]


async def test_lists_are_the_same_in_every_database_that_executions_move_to(tmp_path: Path, postgres_url: str) -> None:
    urls = [f"sqlite:///{tmp_path}/first.db", postgres_url, f"sqlite:///{tmp_path}/last.db"]
    async with Engine(urls[0], workflows=[claim]) as engine:
        for number, amount in enumerate([120, 80, 4000, -5]):
            reference = BusinessReference(f"2026-{number}", {"policy": "P-7" if number else "P-1"})
            await engine.start(claim, amount, workflow_id=f"c{number}", business_reference=reference)
        await engine.signal_workflow("c1", "decide", "paid")
        await engine.handle("c1").result()
    found = [await search(urls[0])]

    for source, target in itertools.pairwise(urls):
        moved = await asyncio.to_thread(CliRunner().invoke, main, ["transfer", source, target])
        assert moved.exit_code == 0, moved.output
        found.append(await search(target))
        checked = await asyncio.to_thread(CliRunner().invoke, main, ["check", target])
        assert checked.exit_code == 0, checked.output

    assert [len(page) for page in found[0]] == [2, 3, 4, 4]
    assert found[1] == found[2] == found[0]
