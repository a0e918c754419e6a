"""U1: stale work is listed and ended by every way to reach a database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Engine, StaleItem
from holdfast.errors import InvalidArguments
from tests.client.conftest import Way, make_engine
from tests.eventually import eventually

SHORT = timedelta(milliseconds=20)


async def test_U1_stale_work_is_listed_and_ended(way: Way) -> None:
    await way.verbs.start("collect", 2, workflow_id="c")
    await way.verbs.start("collect", 2, workflow_id="d")
    if way.is_idle:  # somebody has to own the file for a moment, so that they begin
        async with make_engine(way.url) as engine:
            await eventually(lambda: _are_waiting(engine))
    await eventually(lambda: _are_stale(way), "both to be stale")

    none = await way.verbs.stale(timedelta(days=1))
    page = await way.verbs.stale(SHORT, limit=1)
    rest = await way.verbs.stale(SHORT, limit=1, cursor=page.cursor)

    assert none == []
    assert none.cursor is None
    assert sorted(one.workflow_id for one in [*page, *rest]) == ["c", "d"]
    assert all(isinstance(one, StaleItem) and one.kind == "execution" for one in [*page, *rest])
    for bad in (0, timedelta(0), -1.5, "30d"):
        with pytest.raises(InvalidArguments, match="older_than"):
            await way.verbs.stale(bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidArguments, match="older_than"):
            await way.verbs.end_stale(bad)  # type: ignore[arg-type]
    ended = await way.verbs.end_stale(SHORT, reason="cleaning")
    assert sorted(one.workflow_id for one in ended) == ["c", "d"]
    assert (await way.verbs.query_status("c")).status == "terminated"


async def _are_waiting(engine: Engine) -> bool:
    return [one.status for one in await engine.list()] == ["suspended"] * 2


async def _are_stale(way: Way) -> bool:
    return len(await way.verbs.stale(SHORT)) == 2
