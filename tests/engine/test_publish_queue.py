"""Requests to publish: what is put off holds up only what must not overtake it."""

from __future__ import annotations

import asyncio

from holdfast.engine.publishing.publish_requests import PublishQueue, PublishRequest
from tests.store.topics import make_publication, publishable


def make_request(key: str, number: int) -> PublishRequest:
    publication = make_publication("message", "paid", f"{key}-{number}", key=key)
    loop = asyncio.get_running_loop()
    return PublishRequest(publishable(publication).row, publication, loop.create_future())


def list_ids(requests: list[PublishRequest]) -> list[str]:
    return [one.publication.id for one in requests]


async def test_M1_requests_behind_one_that_is_put_off_wait_and_others_go_on() -> None:
    queue = PublishQueue()
    for number in range(300):
        queue.append(make_request("busy", number))
    queue.append(make_request("free", 0))

    queue.put_off(queue.take(200))
    assert list_ids(queue.take(200)) == ["free-0"]
    queue.append(make_request("busy", 300))
    assert queue.take(200) == []

    queue.resume()
    assert list_ids(queue.take(400)) == [f"busy-{number}" for number in range(301)]
    assert not queue


async def test_all_requests_are_drained_those_that_were_put_off_first() -> None:
    queue = PublishQueue()
    for key in ("busy", "free"):
        queue.append(make_request(key, 0))
    queue.put_off(queue.take(1))

    assert list_ids(list(queue.drain())) == ["busy-0", "free-0"]
    assert not queue
