"""What engines answer with can be returned from web endpoints as it is, and is there what the command line prints."""

from __future__ import annotations

import json
from typing import Any

import httpx
import msgspec
from fastapi import FastAPI

from holdfast import Context, ExecutionInfo, Retry, activity, workflow
from holdfast.engine.use_cases.searching import ExecutionList
from holdfast.engine.views import History, RecordedEvent
from tests.engine.conftest import OpenEngine


@activity(retry=Retry(initial=60, jitter=0.0))
async def knock() -> None:
    raise ConnectionError("nobody is there")


@workflow
async def visit(ctx: Context, name: str) -> None:
    await ctx.run(knock)


async def test_O8_answers_of_an_engine_can_be_returned_from_endpoints(open_engine: OpenEngine) -> None:
    engine = await open_engine(visit, knock)
    await engine.start(visit, "Ann", workflow_id="w", metadata={"tier": "gold"})
    await engine.settle()
    app = FastAPI()

    @app.get("/typed")
    async def typed() -> ExecutionInfo:
        return await engine.query_status("w")

    @app.get("/untyped")
    async def untyped() -> Any:
        return await engine.query_status("w")

    @app.get("/mixed")
    async def mixed() -> dict[str, Any]:
        return {"one": await engine.query_status("w"), "all": await engine.list(), "count": await engine.count()}

    @app.get("/list")
    async def listed() -> list[ExecutionInfo]:
        return await engine.list()

    @app.get("/page")
    async def page() -> ExecutionList:
        return await engine.list()

    @app.get("/history")
    async def history() -> History:
        return await engine.history("w")

    @app.get("/events")
    async def events() -> list[RecordedEvent]:
        return (await engine.history("w")).events

    @app.get("/signal")
    async def signal() -> Any:
        return await engine.signal_workflow("w", "go")

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as browser:

        async def get(path: str) -> Any:
            answer = await browser.get(path)
            assert answer.status_code == 200, answer.text
            return answer.json()

        info, infos = await engine.query_status("w"), await engine.list()
        as_printed = json.loads(msgspec.json.encode(info))
        assert as_printed["pending"]["activities"][0]["last_failure"]["type"] == "ConnectionError"
        assert info.to_dict() == as_printed
        assert await get("/typed") == await get("/untyped") == as_printed
        assert (await get("/mixed"))["one"] == as_printed
        assert (await get("/mixed"))["count"] == json.loads(msgspec.json.encode(await engine.count()))
        assert await get("/list") == await get("/page") == json.loads(msgspec.json.encode(list(infos)))
        assert infos.to_dict() == {"executions": await get("/list"), "cursor": infos.cursor}
        assert await get("/history") == (await engine.history("w")).to_json()
        assert [one["kind"] for one in await get("/events")] == (await engine.history("w")).kinds
        assert "signal_event_sequence" in await get("/signal")
        assert "ExecutionInfo" in json.dumps(await get("/openapi.json"))
