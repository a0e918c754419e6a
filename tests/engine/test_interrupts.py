"""Ctrl-C, or what a handler of a signal raises, ends the process, and fails neither workflow nor activity."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Engine
from tests.engine.support import interrupted_process
from tests.engine.support.interrupted_process import busy, compute

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("handler", ["default", "asyncio", "exit"])
@pytest.mark.parametrize("where", ["workflow", "activity"])
async def test_D2_signal_that_ends_the_process_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, handler: str
) -> None:
    url = f"sqlite:///{tmp_path / 'app.db'}"
    command = [sys.executable, "-m", "tests.engine.support.interrupted_process", url, where, handler]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"busy in {where}\n"
            process.send_signal(signal.SIGINT)
            if handler == "asyncio":  # its handler first cancels the main task, which cannot hear of it, and raises then
                await asyncio.sleep(0.3)
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()

    assert process.returncode == (9 if handler == "exit" else -signal.SIGINT), said
    monkeypatch.setattr(interrupted_process, "IS_BUSY", False)
    async with Engine(url, workflows=[busy], activities=[compute]) as engine:
        assert await engine.handle("w").result() == "computed"
        assert not {"ActivityFailed", "WorkflowFailed"} & set((await engine.history("w")).kinds)
