"""The workers of a pump: what ends one of them is said, since its process cannot do its work any more."""

from __future__ import annotations

import logging

import pytest

from holdfast import Context, Engine, workflow
from holdfast.engine.turns import batch
from tests.engine import hooks
from tests.eventually import PATIENCE


class Unforeseen(BaseException):
    """What no part of the engine raises or catches."""


@workflow
async def waits(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


async def test_worker_that_is_ended_by_a_fault_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine("memory://", workflows=[waits])
    await engine.open()
    monkeypatch.setattr(batch, "route", raise_unforeseen)

    hooks.look_for_work(engine)
    fault = await hooks.wait_for_fault(engine, PATIENCE)

    assert type(fault) is Unforeseen
    (record,) = [one for one in caplog.records if one.levelno == logging.CRITICAL]
    assert record.getMessage() == "holdfast-pump-1 was ended by Unforeseen: restart this process"
    await hooks.crash(engine)


def raise_unforeseen(*_: object, **__: object) -> None:
    raise Unforeseen
