"""What stands in the database beside encoded values, as plain text: exactly what docs/payloads.md lists."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast import ApplicationFailure, Context, EncodedPayload, Engine, Retry, Status, activity, workflow
from tests.eventually import eventually

PLAIN = {"id", "key", "metadata", "header", "signal_name", "cancel_reason", "terminate_reason", "message"}


class Hexadecimal:
    """Writes values as digits."""

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        return [EncodedPayload(one.data.hex().encode(), "hexadecimal") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        return [EncodedPayload(bytes.fromhex(one.data.decode())) for one in payloads]


@activity(retry=Retry(max_attempts=1))
async def work(text: str) -> str:
    raise ApplicationFailure("mark_message", details={"why": "mark_details"})


@workflow
async def mark(ctx: Context, text: str) -> str:
    ctx.set_state({"state": "mark_state"})
    ctx.side_effect(lambda: "mark_side_effect")
    try:
        await ctx.run(work, "mark_argument")
    except ApplicationFailure:
        await ctx.wait_for_signal("mark_signal_name", str)
    return "mark_result"


def find_marks(text: str) -> set[str]:
    return set(re.findall(r"mark_(\w+)", text))


async def test_only_the_listed_texts_are_stored_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "app.db"
    async with Engine(f"sqlite:///{file}", workflows=[mark], activities=[work], codec=Hexadecimal()) as engine:
        options: Any = {"metadata": {"a": "mark_metadata"}, "headers": {"a": "mark_header"}, "idempotency_key": "mark_key"}
        handle = await engine.start(mark, "mark_input", workflow_id="mark_id", **options)
        for workflow_id in ("cancelled", "terminated"):
            await engine.start(mark, "mark_input", workflow_id=workflow_id)
        await eventually(lambda: _wait_for_signals(engine))
        await engine.cancel("cancelled", reason="mark_cancel_reason")
        await engine.terminate("terminated", reason="mark_terminate_reason")
        await engine.signal_workflow("mark_id", "mark_signal_name", ["mark_dead_letter"])
        await engine.signal_workflow("mark_id", "mark_signal_name", "mark_signal")
        assert await handle.result() == "mark_result"
        exported = [line async for line in engine.export_executions("mark_id", "cancelled", "terminated")]

    assert find_marks(str(exported)) <= PLAIN
    assert find_marks(_dump(file)) == PLAIN


async def _wait_for_signals(engine: Engine) -> bool:
    infos = await engine.list(status=Status.SUSPENDED)
    return [(await engine.query_status(one.execution_id)).waiting_kind for one in infos] == ["signal"] * 3


def _dump(file: Path) -> str:
    """All that all tables hold, as text."""
    database = sqlite3.connect(file)
    try:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = [row for (table,) in tables for row in database.execute(f'SELECT * FROM "{table}"')]
    finally:
        database.close()
    return "\n".join(one.decode(errors="replace") if isinstance(one, bytes) else str(one) for row in rows for one in row)


def test_page_lists_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "payloads.md").read_text()
    listed = page.partition("Stored as plain text are ")[2].partition(" So keep ")[0]
    for name in ("ids", "keys", "metadata", "headers", "names", "reasons", "messages"):
        assert name in listed
