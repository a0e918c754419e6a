"""B2: a process that is killed while a broadcast reaches its subscribers in batches. Others go on, and each gets it once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Engine
from tests.engine.nodes.spreading_process import BATCH, LISTENERS, OPTIONS, listener
from tests.eventually import eventually

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("where", ["between", "within"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_B2_killed_amid_its_batches_a_broadcast_reaches_each_once(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, where: str
) -> None:
    url = f"sqlite:///{tmp_path / 'app.db'}" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    kill_amid_batches(url, where)

    async with Engine(url, workflows=[listener], node="heir", **OPTIONS) as engine:
        handles = [engine.handle(f"w{number}") for number in range(LISTENERS)]

        async def have_had_it() -> bool:
            return sum(info.waiting_token == "end" for info in await engine.list(limit=1000)) == LISTENERS

        await eventually(have_had_it, "all to have had it", 60)
        counts = await engine.store.count()
        assert (await engine.broadcast_signal("end", 8)).delivered == LISTENERS
        results = await asyncio.gather(*(handle.result() for handle in handles))
        kinds = [(await handle.history()).kinds for handle in handles]
        problems = await engine.store.check()

    assert counts.inbox == 0
    assert results == [[7, 8]] * LISTENERS
    assert {one.count("SubscriptionTriggered") for one in kinds} == {2}
    assert problems == []
    assert LISTENERS > 4 * BATCH


def kill_amid_batches(url: str, where: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.nodes.spreading_process", url, where],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        said = [process.stdout.readline().strip() for _ in range(2)]
        assert sorted(said) == [f"delivered {LISTENERS}", "stands still"]
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=10) == -signal.SIGKILL
