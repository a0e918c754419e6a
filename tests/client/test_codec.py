"""Clients of engines whose values a codec encodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, EncodedPayload, WorkflowHandle
from tests.client.conftest import make_engine

SECRET = "a secret that must not be on the disk"


class Backwards:
    """Turns values around."""

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        return [EncodedPayload(one.data[::-1], "backwards") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        return [EncodedPayload(one.data[::-1]) for one in payloads]


@pytest.mark.parametrize("is_owned", [True, False])
async def test_U1_a_client_encodes_what_it_writes_itself(file_url: str, is_owned: bool) -> None:
    codec = Backwards()
    async with make_engine(file_url, codec=codec), Client(file_url, codec=codec) as client:
        handle: WorkflowHandle[Any] = await client.start("collect", 1, workflow_id="c")
        if is_owned:
            await handle.signal("value", SECRET)
            assert await handle.result() == [SECRET]
    async with Client(file_url, codec=codec) as client:
        if not is_owned:
            await client.signal_workflow("c", "value", SECRET)
            async with make_engine(file_url, codec=codec) as engine:
                assert await engine.handle("c").result() == [SECRET]
        assert await client.query_result("c") == [SECRET]

    path = Path(file_url.removeprefix("sqlite:///"))
    assert SECRET.encode() not in path.read_bytes()
