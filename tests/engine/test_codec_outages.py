"""A codec that is out of order: whatever needs no value works, the rest waits, and nothing is blamed on an execution."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from holdfast import Context, EncodedPayload, Engine, workflow
from tests.eventually import eventually


class Fragile:
    """Turns values around, as long as it is in order."""

    def __init__(self) -> None:
        self.is_down = self.is_silent = False
        self.encodes = True
        self.lost_keys: set[str] = set()

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        if not self.encodes:
            raise ConnectionError("the key service is away")
        return [EncodedPayload(one.data[::-1], "backwards", org) for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        if self.is_silent:
            await asyncio.Event().wait()
        if self.is_down or not self.lost_keys.isdisjoint(one.key for one in payloads):
            raise ConnectionError("the key service is away")
        return [EncodedPayload(one.data[::-1]) for one in payloads]


@workflow
async def nap(ctx: Context, text: str) -> str:
    await ctx.sleep(0.1)
    return text


async def test_outage_for_one_key_blocks_nobody_and_the_log_does_not_say_so(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    codec = Fragile()
    async with Engine(url, workflows=[nap], codec=codec, max_live_programs=1, max_lost=1) as engine:
        codec.lost_keys.add("lost")
        lost = await engine.start(nap, "a", workflow_id="n", org="lost")
        with caplog.at_level(logging.WARNING, "holdfast.engine"):
            for _ in range(3):
                assert await (await engine.start(nap, "b")).result(timeout=25) == "b"
            await eventually(lambda: caplog.text.count("cannot be committed; it is tried again later, apart") >= 3)

        assert "is blocked" not in caplog.text
        codec.lost_keys.clear()
        assert await lost.result(timeout=25) == "a"
