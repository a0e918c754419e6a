"""ARCHITECTURE.md tells the way of a signal as it is: a real one is followed, and the files compared."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

from holdfast import Context, Engine, workflow

ROOT: Final = Path(__file__).resolve().parent.parent
WAY: Final = (ROOT / "ARCHITECTURE.md").read_text().split("## The way of a signal")[1].split("\n## ")[0]
MOST_FILES: Final = 14
"""From the call to the commit, without the store and the values that are handed on."""
LEAVES: Final = frozenset(
    {
        # What steps of the way call and come back from at once: a reader need not open them to follow the signal.
        "holdfast/code/command_issuer.py",
        "holdfast/code/context.py",
        "holdfast/code/guard.py",
        "holdfast/code/loop.py",
        "holdfast/code/read_only.py",
        "holdfast/code/signals.py",
        "holdfast/core/codec.py",
        "holdfast/core/decoders.py",
        "holdfast/core/effects.py",
        "holdfast/core/execution.py",
        "holdfast/core/ids.py",
        "holdfast/core/instants.py",
        "holdfast/core/lifecycle.py",
        "holdfast/core/payloads.py",
        "holdfast/core/placing.py",
        "holdfast/core/program.py",
        "holdfast/core/routes.py",
        "holdfast/core/start_checks.py",
        "holdfast/core/unused.py",
        "holdfast/engine/activities/offers.py",
        "holdfast/engine/clock.py",
        "holdfast/engine/config.py",
        "holdfast/engine/engine.py",
        "holdfast/engine/publishing/publisher.py",
        "holdfast/engine/quarantine.py",
        "holdfast/engine/routes.py",
        "holdfast/engine/rows.py",
        "holdfast/engine/turns/admission.py",
        "holdfast/engine/turns/batch_effects.py",
        "holdfast/engine/turns/cpu_timer.py",
        "holdfast/engine/turns/facts.py",
        "holdfast/engine/turns/inline_children.py",
        "holdfast/engine/turns/outside_task.py",
        "holdfast/engine/turns/prefetch.py",
        "holdfast/engine/turns/program_cache.py",
        "holdfast/engine/turns/request_keys.py",
        "holdfast/engine/turns/request_queue.py",
        "holdfast/engine/turns/trials.py",
        "holdfast/engine/turns/turn_limit.py",
        "holdfast/engine/turns/turn_order.py",
        "holdfast/engine/turns/unrouted.py",
        "holdfast/engine/turns/work_watch.py",
        "holdfast/engine/turns/workers.py",
    }
)


def find_steps() -> list[str]:
    """The files of the numbered steps, in order."""
    files = []
    for name in re.findall(r"^\d+\. `(holdfast[\w.]+)`", WAY, re.MULTILINE):
        module = name.rsplit(".", 2)[0] if name.split(".")[-2][0].isupper() else name.rsplit(".", 1)[0]
        files.append(module.replace(".", "/") + ".py")
    return files


def find_values() -> set[str]:
    """The files that hold what is handed on."""
    paragraph = WAY.split("What they hand to each other are values:")[1]
    names = re.findall(r"`((?:holdfast/)?[\w/]+\.py)`", paragraph)
    return {name if name.startswith("holdfast/") else f"holdfast/engine/turns/{name}" for name in names}


async def follow_signal(path: Path) -> list[str]:
    """The files of the package through which a signal goes until its result is there, in order of first use."""

    @workflow
    async def waits(ctx: Context) -> str:
        await ctx.wait_for_signal("go", str)
        return await ctx.wait_for_signal("end", str)

    seen: dict[str, None] = {}
    package = f"{ROOT}/holdfast/"

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(package) and frame.f_code.co_name != "__init__":
            seen[name.removeprefix(f"{ROOT}/")] = None

    async with Engine(f"sqlite:///{path}", workflows=[waits]) as engine:
        await engine.start(waits, workflow_id="w")
        sys.setprofile(note)
        try:
            await engine.signal_workflow("w", "go", "on")
        finally:
            sys.setprofile(None)
        await engine.signal_workflow("w", "end", "over")
        assert await engine.handle("w").result() == "over"
    return [name for name in seen if not name.startswith("holdfast/store/")]


def test_the_steps_are_those_of_a_real_signal(tmp_path: Path) -> None:
    steps = find_steps()

    # In a process of its own: a profiler sees, and slows down, everything that runs in its thread.
    command = [sys.executable, "-m", "tests.test_way_of_a_signal", str(tmp_path / "app.db")]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    seen = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, timeout=60, check=True).stdout.decode().split()

    *way, end = steps
    assert [name for name in seen if name in way] == way, "in this order, and none is missing"
    assert end in seen
    others = set(seen) - set(steps) - find_values() - LEAVES
    assert others == set(), "every file that a signal goes through is a step, a value, or a leaf"


def test_the_way_is_short_and_no_file_comes_twice() -> None:
    steps = find_steps()
    before_commit = steps[: steps.index("holdfast/engine/turns/commit_outcome.py")]

    assert len(before_commit) <= MOST_FILES
    assert len(set(steps)) == len(steps)


if __name__ == "__main__":
    print(*asyncio.run(follow_signal(Path(sys.argv[1]))))
