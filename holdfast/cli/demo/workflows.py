"""What runs in the demo: chats, and an order with a payment that fails at first, a timer and children."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast import Context, Retry, activity, workflow
from holdfast.activities.definitions import Activity
from holdfast.cli.demo.outside import Phase, SideEffectLedger
from holdfast.code.definitions import Workflow

SLOW_SUBJECTS: Final = ("piano", "write me a poem")
"""Work on these takes so long in its first attempt that the worker is killed meanwhile."""
FAILING_ATTEMPTS: Final = 2
"""How often the bank does not answer."""


class DemoSettings:
    """Where activities note that they ran, and how fast they are. Set by the worker before the engine opens."""

    ledger = SideEffectLedger(Path())
    pace = 1.0


async def do(subject: str, seconds: float, failing_attempts: int = 0) -> None:
    """The side effect of an activity: two notes in the ledger and some time between them."""
    attempt = DemoSettings.ledger.note(Phase.BEGUN, subject)
    is_stuck = attempt == 1 and subject in SLOW_SUBJECTS
    await asyncio.sleep(3600 if is_stuck else seconds * DemoSettings.pace)
    if attempt <= failing_attempts:
        DemoSettings.ledger.note(Phase.FAILED, subject)
        raise ConnectionError("nobody answers")
    DemoSettings.ledger.note(Phase.DONE, subject)


@activity
async def reply(text: str) -> str:
    await do(text, 0.35)
    return f"You said: {text}"


@activity(retry=Retry(max_attempts=5, initial=0.2, jitter=0.0))
async def charge(account: str) -> str:
    await do(account, 0.25, FAILING_ATTEMPTS)
    return f"receipt for {account}"


@activity
async def fetch(item: str) -> str:
    await do(item, 0.6)
    return item


@activity
async def wrap(items: list[str]) -> str:
    await do(f"{len(items)} items", 0.5)
    return f"parcel of {len(items)}"


@activity
async def hand_over(parcel: str) -> str:
    await do(parcel, 0.5)
    return f"{parcel}, on its way"


class Message(msgspec.Struct, frozen=True):
    """What a person writes; the last one ends the conversation."""

    text: str
    last: bool = False


class Purchase(msgspec.Struct, frozen=True):
    """What is bought, and for how many seconds the buyer may think again."""

    account: str
    items: list[str]
    patience: float


@workflow
async def conversation(ctx: Context, person: str) -> list[str]:
    answers: list[str] = []
    while True:
        message = await ctx.wait_for_signal("message", Message)
        answers.append(await ctx.run(reply, message.text))
        ctx.set_state({"person": person, "answered": len(answers)})
        if message.last:
            return answers


@workflow
async def pick(ctx: Context, item: str) -> str:
    return await ctx.run(fetch, item)


@workflow
async def pack(ctx: Context, items: list[str]) -> str:
    return await ctx.run(wrap, items)


@workflow
async def ship(ctx: Context, parcel: str) -> str:
    return await ctx.run(hand_over, parcel)


@workflow
async def order(ctx: Context, purchase: Purchase) -> str:
    me = ctx.info.workflow_id
    await ctx.run(charge, purchase.account)
    picking = [ctx.run_child(pick, item, workflow_id=f"{me}/pick-{item}") for item in purchase.items]
    await ctx.sleep(purchase.patience)
    parcel = await ctx.run_child(pack, await asyncio.gather(*picking), workflow_id=f"{me}/pack")
    return await ctx.run_child(ship, parcel, workflow_id=f"{me}/ship")


WORKFLOWS: Final[Sequence[Workflow[..., Any]]] = (conversation, order, pick, pack, ship)
ACTIVITIES: Final[Sequence[Activity[..., Any]]] = (reply, charge, fetch, wrap, hand_over)
