"""`holdfast send-message`, `send-event`, `broadcast`, `events`: what they do to a file that nobody owns."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from holdfast import Context, Engine, event, workflow
from holdfast.cli import main


@event
@dataclass
class Parcel:
    number: int


@workflow
async def receiver(ctx: Context) -> list[Any]:
    winner = await ctx.wait_for_message("arrived", "p-1")
    news = await ctx.wait_for_broadcast("news")
    return [winner, news, (await ctx.wait_for_event(Parcel)).number]


def run(path: Path, command: str, *arguments: str) -> Any:
    done = CliRunner().invoke(main, [command, str(path), *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


async def work(path: Path, *, starts: bool = False) -> list[Any] | None:
    async with Engine(f"sqlite:///{path}", workflows=[receiver], events=[Parcel]) as engine:
        if starts:
            await engine.start(receiver, workflow_id="w")
        await asyncio.sleep(0.1)
        info = await engine.query_status("w")
        return None if info.closed_at is None else await engine.query_result("w")


def test_messages_broadcasts_and_events_are_sent_listed_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    asyncio.run(work(path, starts=True))

    message = run(path, "send-message", "arrived", "p-1", '{"from": "ann"}', "--request-id", "r")
    assert message["delivered"] is True
    asyncio.run(work(path))
    assert run(path, "broadcast", "news", "7") == {"org": "default", "signal": "news", "delivered": 1, "started": 0}
    asyncio.run(work(path))
    first = run(path, "send-event", "Parcel", '{"number": 1}', "--to", "w")
    assert first["delivered"] == 1
    assert run(path, "send-event", "Parcel", '{"number": 2}')["kept"] is True
    (kept,) = run(path, "events", "list", "Parcel")["events"]
    assert kept["value"] == {"number": 2}
    assert run(path, "events", "remove", "Parcel", kept["id"])["removed"] is True
    assert run(path, "events", "list", "Parcel") == {"events": []}
    assert asyncio.run(work(path)) == [{"from": "ann"}, 7, 1]


def test_refusals_are_sentences_and_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    asyncio.run(work(path, starts=True))

    nobody = CliRunner().invoke(main, ["send-message", str(path), "other", "k"])
    unknown = CliRunner().invoke(main, ["send-event", str(path), "Letter", "1"])
    missing = CliRunner().invoke(main, ["events", str(path), "remove", "Parcel", "nothing"])

    assert (nobody.exit_code, unknown.exit_code, missing.exit_code) == (1, 1, 1)
    assert "nobody" in nobody.output
    assert "known: Parcel" in unknown.output.replace("\n", " ")
    assert "is not kept" in missing.output
