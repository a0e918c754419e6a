"""D1: a log that fills a small disk gives it back by itself, and so does a transaction that is too large for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgres.small_disk import MEGABYTE, is_possible
from tests.store.sqlite.processes import run

pytestmark = pytest.mark.skipif(not is_possible(), reason="no user namespaces on this system")

MOUNT = 'mount -t tmpfs -o "size=$1,mode=700" tmpfs "$2" && shift 2 && exec "$@"'

WRITE = """
logging.disable()
store = SqliteStore(path)
await store.open()

async def write(kilobytes, *consumed):
    await commit_unrouted(store, make_signal("x" * kilobytes * 1024), consumed=consumed)

def size_of_log():
    return path.with_name(path.name + "-wal").stat().st_size >> 20
"""


def run_on_small_disk(body: str, folder: Path, megabytes: int) -> list[str]:
    shell = ["sh", "-c", MOUNT, "sh", str(megabytes * MEGABYTE), str(folder)]
    return run(WRITE + body, folder / "app.db", wrapper=["unshare", "--user", "--map-root-user", "--mount", *shell])


def test_the_log_does_not_fill_a_disk_on_which_the_data_has_room(tmp_path: Path) -> None:
    body = """
for number in range(200):
    await write(1024, number)  # one row at a time
say((await store.count()).inbox)
say(await store.check())
await store.close()
"""
    assert run_on_small_disk(body, tmp_path, 24) == ["1", "[]"]


def test_after_the_disk_was_full_room_that_is_made_in_the_database_is_enough(tmp_path: Path) -> None:
    body = """
count = 0
try:
    while True:
        await write(256)
        count += 1
except StoreUnavailable as error:
    say("is full. Nothing was written" in str(error))
for number in range(count):
    await commit_unrouted(store, consumed=[number + 1])
for number in range(100):
    await write(256, count + number)
say(count * 256 // 1024 >= 32)
say(await store.check())
await store.close()
"""
    assert run_on_small_disk(body, tmp_path, 48) == ["True", "True", "[]"]


def test_transaction_that_is_too_large_for_the_disk_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    body = """
for number in range(8):
    await write(1024)
for _ in range(3):
    try:
        await commit_unrouted(store, *[make_signal("x" * 1024 * 1024) for _ in range(40)])
    except StoreUnavailable as error:
        say("is full. Nothing was written" in str(error))
    await write(512)
say((await store.count()).inbox)
say(await store.check())
await store.close()
"""
    assert run_on_small_disk(body, tmp_path, 32) == ["True", "True", "True", "11", "[]"]


def test_work_goes_on_when_others_make_room(tmp_path: Path) -> None:
    body = """
await write(1024)
ballast = path.with_name("ballast")
with ballast.open("wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass
try:
    await write(1024)
except StoreUnavailable:
    say("refused")
ballast.unlink()
await write(1024)
say((await store.count()).inbox)
say(await store.check())
await store.close()
"""
    assert run_on_small_disk(body, tmp_path, 16) == ["refused", "2", "[]"]


def test_engine_goes_on_once_retention_has_made_room(tmp_path: Path) -> None:
    body = """
from holdfast import Engine, workflow

@workflow
async def order(ctx, text: str) -> None: ...

await store.close()
async with Engine(f"sqlite:///{path}", workflows=[order], retention=1.0) as engine:
    try:
        for _ in range(1000):
            await engine.start(order, "x" * 200_000)
    except StoreUnavailable:
        say("refused")
    async with asyncio.timeout(60):
        while True:
            try:
                await (await engine.start(order, "x" * 200_000)).result()
                break
            except StoreUnavailable:
                await asyncio.sleep(0.05)
    say(await engine.store.check())
"""
    assert run_on_small_disk(body, tmp_path, 24) == ["refused", "[]"]
