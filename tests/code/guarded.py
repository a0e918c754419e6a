"""Ways to run code as a workflow's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.code import guard
from holdfast.code.loop import WorkflowLoop

guard.install()


@contextmanager
def running(workflow: str = "order") -> Iterator[None]:
    guard.enter(workflow)
    try:
        yield
    finally:
        guard.leave()


def run_workflow(flow: Callable[[], Any]) -> BaseException | None:
    loop = WorkflowLoop("order", 1, lambda _due: 1, lambda _number: None)  # type: ignore[abstract]
    task = loop.create_task(flow())
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    guard.enter("order")
    try:
        loop.run_ready(1000)
    finally:
        guard.leave()
        asyncio._set_running_loop(outer)
    return task.exception()
