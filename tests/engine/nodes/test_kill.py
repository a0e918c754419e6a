"""A process that is killed with SIGKILL: what it was promised is there, and the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from holdfast import Engine
from holdfast.core import events
from holdfast.errors import StoreOwned
from tests.engine.nodes import killed_process

ROOT = Path(__file__).parents[3]


def spawn(url: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.engine.nodes.killed_process", url, str(path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def read_until(process: subprocess.Popen[str], last: str) -> list[str]:
    """The lines that a process says up to the one given."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line.strip())
        if said[-1] == last:
            return said
    pytest.fail(f"it ended before it said '{last}': {said[-5:]}")


def kill(process: subprocess.Popen[str]) -> list[str]:
    """End it as the machine would; what it said until then and nobody had read."""
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=10) == -signal.SIGKILL
    assert process.stdout is not None
    rest = process.stdout.read()  # with what was buffered while it was read line by line: communicate() would leave that out
    process.stdout.close()
    whole = rest[: rest.rfind("\n") + 1]
    return whole.split("\n")[:-1]


@pytest.mark.parametrize("last", ["signalled 0", "signalled 7", "signalled 60"])
async def test_R2_killed_process_loses_nothing_that_it_was_promised_and_repeats_nothing_that_was_recorded(
    tmp_path: Path, last: str
) -> None:
    url, path = f"sqlite:///{tmp_path / 'app.db'}", tmp_path / "written"
    path.touch()
    process = spawn(url, path)
    said = read_until(process, last)
    said += kill(process)

    async with Engine(url, workflows=killed_process.WORKFLOWS, activities=killed_process.ACTIVITIES) as engine:
        assert engine.recovery_report is not None
        assert engine.recovery_report.resumed <= 5
        await engine.signal_workflow("collect", "number", -1)
        collected = await engine.handle("collect").result()
        chains = [await engine.handle(f"chain-{number}").result() for number in range(5)]
        assert await engine.handle("nap").result() == "slept"
        for number in range(5):
            history = (await engine.history(f"chain-{number}")).events
            assert [one.sequence for one in history] == list(range(1, len(history) + 1))
            ended = [one.event.number for one in history if isinstance(one.event, events.ActivityCompleted)]
            assert ended == list(range(1, 201))
        problems = await engine.store.check()

    promised = [int(line.split()[1]) for line in said if line.startswith("signalled")]
    assert collected[: len(promised)] == promised
    assert len(collected) <= len(promised) + 1, "one more may have been stored before its answer was printed"
    assert chains == [list(range(200))] * 5
    writes = Counter(path.read_text(encoding="utf-8").split("\n")[:-1])
    assert len(writes) == 1_000
    assert sum(writes.values()) <= 1_005, "only what was running ran again, once for each chain"
    assert problems == []


async def test_database_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    url, path = f"sqlite:///{tmp_path / 'app.db'}", tmp_path / "written"
    path.touch()
    process = spawn(url, path)
    read_until(process, "signalled 0")

    with pytest.raises(StoreOwned, match=r"^Expected ") as refused:
        await Engine(url).open()
    assert 'take PostgreSQL (`Engine("postgresql://…")`)' in refused.value.message
    assert f'`holdfast.Client("{url}")`' in refused.value.message

    kill(process)
    async with Engine(url, workflows=killed_process.WORKFLOWS, activities=killed_process.ACTIVITIES) as engine:
        assert (await engine.query_status("collect")).workflow == "collect"
