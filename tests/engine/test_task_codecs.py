"""With a codec, what people are shown, fill in and say about human tasks is stored encoded."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path

from holdfast import Context, EncodedPayload, Engine, workflow


class Base64Codec:
    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        return [EncodedPayload(b64encode(one.data), "base64") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        return [EncodedPayload(b64decode(one.data)) for one in payloads]


@workflow
async def asking(ctx: Context) -> str:
    answer: str = await ctx.human_task("ask", str, payload="secret question")
    return answer


async def test_payload_form_and_comments_of_a_task_are_stored_encoded(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    async with Engine(f"sqlite:///{path}", workflows=[asking], codec=Base64Codec()) as engine:
        handle = await engine.start(asking)
        [task] = await engine.tasks()
        await engine.claim_task(task.task_id, by="ann")
        await engine.comment_task(task.task_id, "secret comment", by="ann")
        done = await engine.complete_task(task.task_id, "secret answer", by="ann")
        events = await engine.task_events(task.task_id)

        assert (task.payload, done.result, events[2].comment) == ("secret question", "secret answer", "secret comment")
        assert await handle.result() == "secret answer"

    stored = b"".join(one.read_bytes() for one in tmp_path.iterdir() if one.is_file())
    assert b"secret" not in stored
    assert b'"encoding":"base64"' in stored
