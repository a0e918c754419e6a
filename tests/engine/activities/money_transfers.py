"""A process that moves money between accounts in its engine's own database, until somebody kills it.

It says when it is open, and begins when it is given a line. Meanwhile it takes part in what others began.
The money and the ledger have no constraint that would hide a transfer that is made twice, or half.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import suppress
from typing import Any, Final

from holdfast import Context, Engine, TransactionActivity, activity_info, transaction, workflow
from holdfast.errors import WorkflowAlreadyClosed
from tests.engine.support.user_connections import schema_of

FLOWS: Final = 8
STEPS: Final = 25
OPENING: Final = 1_000


def say(*words: object) -> None:
    print(*words, flush=True)


@transaction
def transfer(db: sqlite3.Connection, flow: int, step: int) -> int:
    say("inside", flow, step)
    db.execute("UPDATE accounts SET cents = cents - 1 WHERE name = 'shop'")
    db.execute("INSERT INTO ledger VALUES (?, ?, ?)", (flow, step, activity_info().attempt))
    db.execute("UPDATE accounts SET cents = cents + 1 WHERE name = 'bank'")
    return activity_info().attempt


def make_async_transfer(schema: str) -> TransactionActivity[[int, int], int]:
    @transaction(name="transfer")
    async def transfer(db: Any, flow: int, step: int) -> int:
        say("inside", flow, step)
        await db.execute(f"INSERT INTO {schema}.ledger VALUES ($1, $2, $3)", flow, step, activity_info().attempt)
        await db.execute(f"UPDATE {schema}.accounts SET cents = cents - 1 WHERE name = 'shop'")
        await db.execute(f"UPDATE {schema}.accounts SET cents = cents + 1 WHERE name = 'bank'")
        return activity_info().attempt

    return transfer


@workflow
async def pay(ctx: Context, flow: int) -> list[int]:
    """The attempt that committed each step."""
    return [await ctx.transaction(transfer, flow, step) for step in range(STEPS)]


TABLES: Final = (
    "CREATE TABLE {schema}ledger (flow integer, step integer, attempt integer)",
    "CREATE TABLE {schema}accounts (name text, cents integer)",
    f"INSERT INTO {{schema}}accounts VALUES ('shop', {OPENING}), ('bank', 0)",
)


def make_engine(url: str, **options: Any) -> Engine:
    is_sqlite = url.startswith("sqlite")
    activity = transfer if is_sqlite else make_async_transfer(schema_of(url))
    return Engine(url, workflows=[pay], activities=[activity], **options)


async def main(url: str, node: str) -> None:
    options = {} if url.startswith("sqlite") else {"node": node, "heartbeat": 0.2, "lease": 1.0}
    async with make_engine(url, **options) as engine:
        say("open")
        await asyncio.to_thread(sys.stdin.readline)
        await start_all(engine)
        await asyncio.Event().wait()


async def start_all(engine: Engine) -> None:
    """Each flow once, whoever comes first."""
    for flow in range(FLOWS):
        with suppress(WorkflowAlreadyClosed):
            await engine.start(pay, flow, workflow_id=f"flow-{flow}", on_closed="reject")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
