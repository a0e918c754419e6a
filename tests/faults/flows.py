"""Workflows whose effects can be counted, and the activities that leave them: what every node of the faults' tests runs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast import ActivityFailed, Context, Retry, activity, activity_info, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from tests.faults import ledger

PATIENT: Final = Retry(initial=0.02, maximum=0.3)
"""Tries without end: an activity that cannot note its effect, since the server is down, is to do it later."""
RUN_LENGTH: Final = 20
"""How many signals one run of a conversation hears before it continues as another."""


# --- activities ---


@activity(retry=PATIENT)
async def step(number: int) -> int:
    """Leave an effect, and double a number."""
    await ledger.note(activity_info())
    return 2 * number


@activity(retry=PATIENT)
async def stumble() -> int:
    """Fail twice, then tell which attempt it was."""
    attempt = activity_info().attempt
    await ledger.note(activity_info())
    if attempt < 3:
        raise ValueError(f"attempt {attempt} stumbles")
    return attempt


@activity(retry=PATIENT)
async def linger(seconds: float) -> int:
    """Take a while in the first attempt."""
    await ledger.note(activity_info())
    if activity_info().attempt == 1:
        await asyncio.sleep(seconds)
    return activity_info().attempt


@activity(retry=PATIENT)
async def linger_until(path: str) -> int:
    """Go on in the first attempt until there is a file of that name."""
    await ledger.note(activity_info())
    while activity_info().attempt == 1 and not Path(path).exists():
        await asyncio.sleep(0.01)
    return activity_info().attempt


@activity(retry=Retry(max_attempts=1))
async def hog(asleep: float, spinning: float) -> int:
    """Hold up the loop of its node: first in a call that blocks, then in Python code that never waits."""
    await ledger.note(activity_info())
    time.sleep(asleep)
    end = time.monotonic() + spinning
    while time.monotonic() < end:
        pass
    return activity_info().attempt


@activity(retry=Retry(max_attempts=1))
async def kill_own_process() -> None:
    """End the process that runs it, as the kernel does to one that takes too much memory."""
    await ledger.note(activity_info())
    os.kill(os.getpid(), signal.SIGKILL)


# --- workflows ---


@workflow
async def chain(ctx: Context, length: int) -> list[int]:
    return [await ctx.run(step, number) for number in range(length)]


@workflow
async def naps(ctx: Context, count: int, seconds: float) -> list[int]:
    results = []
    for number in range(count):
        await ctx.sleep(seconds)
        results.append(await ctx.run(step, number))
    return results


@workflow
async def brief(ctx: Context, number: int) -> int:
    """A bit of everything that workflows wait for."""
    doubled = await ctx.run(step, number)
    await ctx.sleep(0.01)
    return doubled + await ctx.wait_for_signal("add", int)


@workflow
async def stumbles(ctx: Context) -> int:
    return await ctx.run(stumble)


@workflow
async def lingers(ctx: Context, seconds: float) -> int:
    return await ctx.run(linger, seconds)


@workflow
async def lingers_until(ctx: Context, path: str) -> int:
    return await ctx.run(linger_until, path)


@workflow
async def hogs(ctx: Context, asleep: float, spinning: float) -> int:
    return await ctx.run(hog, asleep, spinning)


@workflow
async def family(ctx: Context, children: int, length: int) -> list[list[int]]:
    """A parent and its children, all at once."""
    return list(await asyncio.gather(*(ctx.run_child(chain, length) for _ in range(children))))


@workflow
async def kills(ctx: Context) -> str:
    try:
        await ctx.run(kill_own_process)
    except ActivityFailed as error:
        return error.type
    return "lived"


@dataclass
class Said:
    """A numbered signal of one sender."""

    sender: str
    number: int
    is_last: bool = False


@workflow
async def conversation(ctx: Context, open_senders: list[str], heard: list[Said]) -> list[Said]:
    """Hear each sender to its end, in run after run. What was heard, in order."""
    while open_senders:
        said = await ctx.wait_for_signal("said", Said)
        heard.append(said)
        if said.is_last:
            open_senders.remove(said.sender)
        if said.number % 5 == 0:
            await ctx.run(step, said.number)
        if len(heard) % RUN_LENGTH == 0:
            ctx.continue_as(open_senders, heard)
    return heard


@workflow
async def relay(ctx: Context, to: str, count: int) -> int:
    """A sender that is a workflow itself."""
    for number in range(count):
        said = Said(ctx.info.workflow_id, number, number == count - 1)
        await ctx.signal_external_workflow(to, "said", said)
        await ctx.run(step, number)
    return count


@workflow
async def hearing(ctx: Context, count: int) -> list[int]:
    """Take large signals in, and tell the number of each and of its characters."""
    heard = []
    for _ in range(count):
        number, text = await ctx.wait_for_signal("text", tuple[int, str])
        heard += [number, len(text)]
    return heard


WORKFLOWS: Final[list[Workflow[..., Any]]] = [
    brief,
    chain,
    conversation,
    family,
    hearing,
    hogs,
    kills,
    lingers,
    lingers_until,
    naps,
    relay,
    stumbles,
]
ACTIVITIES: Final[list[Activity[..., Any]]] = [hog, kill_own_process, linger, linger_until, step, stumble]
