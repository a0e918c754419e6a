"""A database with something of everything in it, and the command line to look into it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast import Context, Engine, WorkflowFailed, activity, workflow
from holdfast.cli import main

Invoke = Callable[..., Result]


@activity
async def double(number: int) -> int:
    return number * 2


@workflow
async def doubling(ctx: Context, number: int) -> int:
    return await ctx.run(double, number)


@workflow
async def waiting(ctx: Context) -> str:
    return await ctx.wait_for_signal("word", str, timeout=3600)


@workflow
async def failing(ctx: Context) -> None:
    raise ValueError("no \x1b[31m[red]colour")


async def fill(url: str) -> None:
    async with Engine(url, workflows=[doubling, waiting, failing], activities=[double]) as engine:
        await (await engine.start(doubling, 21, workflow_id="done")).result()
        await engine.start(waiting, workflow_id="open")
        await engine.start(waiting, workflow_id="elsewhere", org="acme")
        with pytest.raises(WorkflowFailed):
            await (await engine.start(failing, workflow_id="broken")).result()
        await engine.signal_workflow("open", "word", 42)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("filled") / "app.db"
    asyncio.run(fill(f"sqlite:///{path}"))
    return path.read_bytes()


@pytest.fixture
def database(filled: bytes, tmp_path: Path) -> Path:
    """A completed, a suspended and a failed execution, one of another org, and a dead letter."""
    path = tmp_path / "app.db"
    path.write_bytes(filled)
    return path


@pytest.fixture(scope="session")
def invoke() -> Invoke:
    """Run a command in this process."""

    def run(*args: object, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)

    return run


@pytest.fixture
def spawn() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in a process of its own, without a terminal."""

    def run(*args: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast.cli", *(str(arg) for arg in args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)

    return run
