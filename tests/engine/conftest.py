"""Engines in virtual time on every store."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.testing import TestEngine
from tests.engine.support.cluster import Cluster
from tests.places import make_url

LONGEST_TEST: Final = 240
"""Seconds. Some start ten processes, one after the other, on a machine that may be busy."""


class OpenEngine(Protocol):
    """Opens an engine on the test's own database."""

    def __call__(self, *definitions: Workflow[..., Any] | Activity[..., Any], **options: Any) -> Awaitable[TestEngine]: ...


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of store, empty."""
    return make_url(request, tmp_path)


@pytest.fixture
async def open_engine(url: str) -> AsyncIterator[OpenEngine]:
    """Opens engines with what is given. Time moves only when a test says so; all are closed at the end."""
    engines: list[TestEngine] = []

    async def open_engine(*definitions: Workflow[..., Any] | Activity[..., Any], **options: Any) -> TestEngine:
        workflows = [one for one in definitions if isinstance(one, Workflow)]
        activities = [one for one in definitions if isinstance(one, Activity)]
        chosen: dict[str, Any] = {"auto_advance": False, "patience": 0.0, "store": url} | options
        engine = TestEngine(workflows=workflows, activities=activities, **chosen)
        engines.append(engine)
        await engine.open()
        return engine

    yield open_engine
    for engine in engines:
        await engine.shutdown()


@pytest.fixture(params=["memory", "postgres"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A database that several engines share, empty, and no engine yet."""
    cluster = Cluster(request.getfixturevalue("postgres_url") if request.param == "postgres" else None)
    yield cluster
    await cluster.close()


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    """A test that waits for what will never come fails instead of holding up the others."""

    def give_up(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"the test did not end within {LONGEST_TEST} s")

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST_TEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
