"""Activities that run in processes of their own: found there by their place in this module."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import ApplicationFailure, BpmnError, Retry, RetryAfter, activity


@dataclass
class Job:
    number: int


class Awkward(Exception):
    """Cannot be rebuilt from its arguments, as many exceptions of libraries."""

    def __init__(self, code: int, *, hint: str) -> None:
        super().__init__(f"awkward {code}, {hint}")


@activity(executor="process", retry=Retry(max_attempts=1))
def compute(job: Job) -> list[int]:
    return [os.getpid(), job.number * 2]


@activity(executor="process", retry=Retry(max_attempts=1))
def fail(how: str) -> Any:
    match how:
        case "plain":
            raise ValueError("no")
        case "details":
            raise ApplicationFailure("no", type="Declined", details={"code": 51})
        case "awkward":
            raise Awkward(7, hint="x")
        case "exit":
            raise SystemExit(3)
        case "unencodable":
            return object()
    os._exit(9)


class Wordless(Exception):
    def __str__(self) -> str:
        raise asyncio.CancelledError("no words")


@activity(executor="process", retry=Retry(max_attempts=2, initial=0.05))
def raise_odd(how: str) -> None:
    match how:
        case "stop":
            raise StopIteration
        case "generator exit":
            raise GeneratorExit
        case "cancel":
            raise asyncio.CancelledError
        case "interrupt":
            raise KeyboardInterrupt
        case "wordless":
            raise Wordless


@activity(executor="process", retry=Retry(max_attempts=1))
def sleep_in_process(marker: str) -> None:
    """Says in a file which process it is, and does not end."""
    Path(marker).write_text(str(os.getpid()))
    time.sleep(3600)


@activity(executor="process", retry=Retry(max_attempts=3, initial=0))
def die_once(marker: str) -> str:
    """Takes its process down the first time."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "lived"
    os._exit(9)


@activity(executor="process", retry=Retry(max_attempts=3, initial=0))
def fork_and_die_once(marker: str) -> str:
    """Takes its process down the first time, and leaves one behind that holds all its pipes open."""
    if Path(marker).exists():
        return "lived"
    child = os.fork()
    if child == 0:
        time.sleep(60)
    else:
        Path(marker).write_text(str(child))
    os._exit(9)


def undecorated(number: int) -> int:
    return number + 1


decorated_elsewhere = activity(name="decorated elsewhere", executor="process", retry=Retry(max_attempts=1))(undecorated)


@activity(executor="process", at_most_once=True)
def die_at_most_once(_order: int) -> None:
    """Ends its process, which nobody may repeat."""
    os._exit(3)


@activity(executor="process", retry=Retry(only=[ConnectionError], max_attempts=2, initial=0))
def raise_busy(kind: str) -> None:
    """Fails in the way that is asked for."""
    if kind == "reset":
        raise ConnectionResetError("gone")
    if kind == "after":
        raise RetryAfter(0, details={"limit": 5})
    raise ValueError("no")


@activity(executor="process")
def charge_elsewhere(card: str, *, amount: int) -> list[Any]:
    return [card, amount]


@activity(executor="process")
def take_all_elsewhere(**variables: Any) -> dict[str, Any]:
    return variables


@activity(executor="process")
def throw_elsewhere(code: str) -> None:
    raise BpmnError(code, "in a process", {"limit": 5})
