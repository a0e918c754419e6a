"""G1 and G3 for clients: the owner of a file checks them as it checks its own callers."""

from __future__ import annotations

import pytest

from holdfast import Client, LimitReached, OrgLimits
from tests.client.conftest import make_engine
from tests.client.workflows import collect


async def test_G1_clients_are_limited_by_the_owner_of_the_file(file_url: str) -> None:
    limits = OrgLimits(open_executions=2, kept_items=1)
    async with make_engine(file_url, org_limits=limits) as engine, Client(file_url) as client:
        await engine.start(collect, 1, workflow_id="a")
        await client.start(collect, 1, workflow_id="b")

        with pytest.raises(LimitReached, match="fewer than 2 open executions") as refused:
            await client.start(collect, 1, workflow_id="c")
        with pytest.raises(LimitReached):
            await client.signal_with_start_workflow("d", collect, 1, signal_name="go")
        assert not (await client.start(collect, 1, workflow_id="a")).created
        assert (refused.value.org, refused.value.what, refused.value.limit) == ("default", "open_executions", 2)
        assert sorted(one.workflow_id for one in await client.list()) == ["a", "b"]

        await client.send_message("news", "k1", ttl=60)
        with pytest.raises(LimitReached) as full:
            await client.send_message("news", "k2", ttl=60)
        assert full.value.what == "kept_items"

        await client.terminate("b")
        assert (await client.start(collect, 1, workflow_id="c")).created
