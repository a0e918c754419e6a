"""A2: a transaction that the database gives up while its function runs is a failed attempt, and not called for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import ActivityFailed, Context, Retry, transaction, workflow
from holdfast.engine.activities import transactions
from holdfast.engine.engine import Engine
from holdfast.store.postgres import idle_watch

CALLS: list[str] = []


@transaction(retry=Retry(max_attempts=2, initial=0.01))
async def idle(connection: Any, how: str) -> None:
    CALLS.append(how)
    if how == "cut off":
        await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return
    await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '20ms'")
    await asyncio.sleep(0.5)
    if how == "idles, then asks":
        await connection.execute("SELECT 1")


@workflow
async def order(ctx: Context, how: str) -> list[Any]:
    try:
        await ctx.transaction(idle, how)
    except ActivityFailed as error:
        return [error.type, error.attempt]
    return []


@pytest.mark.parametrize(
    ("how", "calls_per_attempt"), [("idles", 1), ("idles, then asks", 1), ("cut off", transactions.MOST_CUTS)]
)
async def test_A2_transaction_that_is_cut_off_while_its_function_runs_fails(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, how: str, calls_per_attempt: int
) -> None:
    monkeypatch.setattr(transactions, "FIRST_PAUSE", 1_000)
    monkeypatch.setattr(idle_watch, "IDLE_SECONDS", 10 if how == "cut off" else 0.01)
    CALLS.clear()

    async with Engine(postgres_url, workflows=[order], activities=[idle]) as engine:
        handle = await engine.start(order, how)

        assert await asyncio.wait_for(handle.result(), 30) == ["StoreUnavailable", 2]
    assert list(CALLS) == [how] * 2 * calls_per_attempt
