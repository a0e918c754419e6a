"""With a codec nothing of a value is stored in plain, whatever it is published, asked, updated or scheduled by."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Engine, Message, event, workflow
from tests.engine.test_task_codecs import Base64Codec
from tests.eventually import eventually
from tests.postgres.access import connect

SECRET = "mark-of-a-value"
AUDIT = """
CREATE TABLE audit (of text, content text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I.audit VALUES ($1, $2)', TG_TABLE_SCHEMA) USING TG_TABLE_NAME, NEW::text;
    RETURN NULL;
END
$$;
DO $$
DECLARE
    one text;
BEGIN
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema AND tablename <> 'audit' LOOP
        EXECUTE format('CREATE TRIGGER note AFTER INSERT OR UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION note()', one);
    END LOOP;
END
$$
"""
"""Everything that is ever written, also what is gone at once: outboxes, inboxes, questions."""


@event(expire_after=timedelta(hours=1))
@dataclass
class Shipped:
    order: int
    notes: list[str]


@workflow
async def wait_for_all(ctx: Context) -> list[Any]:
    done = asyncio.Event()

    @ctx.on_update
    def put(value: str) -> str:
        done.set()
        return f"{value} put"

    ctx.on_query("ask", lambda value: f"{value} asked")
    first = await asyncio.gather(ctx.wait_for_message("paid", "k", str), ctx.wait_for_broadcast("go", dict[str, str]))
    shipped = [(await ctx.wait_for_event(Shipped, where={"order": number})).notes for number in (1, 2)]
    await done.wait()
    return [*first, *shipped]


@workflow
async def tell_all(ctx: Context) -> None:
    """Publishes in a turn, by the outbox: to who waits, and so that it is kept."""
    await ctx.send_message("paid", "k", SECRET)
    await ctx.broadcast_signal("go", {"word": SECRET})
    await ctx.send_event(Shipped(1, [SECRET]))
    await ctx.send_event(Shipped(3, [SECRET]))


@workflow(starts_on=Message("begin"))
async def begin(ctx: Context, value: str) -> str:
    return value + str(await ctx.wait_for_signal("on"))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each store that lasts."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'app.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


def open_engine(url: str, **options: Any) -> Engine:
    options = {"workflows": [wait_for_all, tell_all, begin], "codec": Base64Codec(), **options}
    return Engine(url, **options)


async def use_everything(engine: Engine, other: Engine) -> None:
    waiting = await engine.start(wait_for_all, workflow_id="waiting")

    async def waits() -> bool:
        return len(await engine.store.list_subscriptions("default", str(waiting.execution_id))) == 2

    await eventually(waits, "it waits")
    await engine.send_event_to("waiting", Shipped(2, [SECRET]))  # kept for it alone
    await (await engine.start(tell_all)).result()
    assert await other.query("waiting", "ask", SECRET) == f"{SECRET} asked"
    assert await other.update("waiting", "put", SECRET, request_id="r") == f"{SECRET} put"
    assert await engine.update("waiting", "put", SECRET, request_id="r") == f"{SECRET} put"
    assert await waiting.result() == [SECRET, {"word": SECRET}, [SECRET], [SECRET]]
    assert [one.value.notes for one in await engine.pending_events(Shipped)] == [[SECRET]]
    await engine.send_message("begin", "b", SECRET)
    await engine.send_message("begin", "b", f"{SECRET} again", ttl=600)  # kept until the first has ended
    await engine.signal_workflow("b", "on", "!")
    assert await engine.handle("b").result() == f"{SECRET}!"
    await engine.send_message("nobody", "k", SECRET, ttl=600)
    await engine.create_schedule("s", "0 6 * * *", begin, SECRET)
    run = await engine.run_schedule("s")
    await engine.signal_workflow(run.workflow_id, "on", "!")
    assert await engine.handle(run.workflow_id).result() == f"{SECRET}!"


def read_stored(url: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Everything that was ever written, by file or table, as text."""
    if url.startswith("sqlite"):
        for path in folder.glob("app.db*"):
            yield path.name, path.read_bytes().decode("latin-1")
        return
    with connect(url) as connection:
        yield from connection.execute("SELECT of, content FROM audit").fetchall()


async def test_nothing_of_what_is_published_asked_or_scheduled_is_stored_in_plain(url: str, tmp_path: Path) -> None:
    async with open_engine(url):
        pass
    if not url.startswith("sqlite"):
        with connect(url) as connection:
            connection.execute(AUDIT)
    async with open_engine(url) as engine:
        if url.startswith("sqlite"):
            await use_everything(engine, engine)
        else:
            async with open_engine(url, workflows=[], node="other") as other:
                await use_everything(engine, other)

    stored = list(read_stored(url, tmp_path))

    found = [(of, text[:300]) for of, text in stored if SECRET in text or SECRET.encode().hex() in text]
    assert found == []
    if not url.startswith("sqlite"):
        used = {of for of, _ in stored}
        assert used >= {"subscriptions", "pending", "publications", "inbox", "questions", "requests", "schedules", "events"}
