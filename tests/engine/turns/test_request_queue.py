"""Requests are taken in order of arrival, no execution by two workers at once; the cost does not grow with the queue."""

from __future__ import annotations

import asyncio
from itertools import cycle

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.envelopes import Cancel
from holdfast.engine.requests import AnyRequest, Request
from holdfast.engine.turns.program_cache import ProgramCache
from holdfast.engine.turns.request_queue import SMALLEST_SHARE, RequestQueue
from holdfast.engine.turns.workers import BatchWorkers

CANCEL = Cancel(reason="")


class CountingCache(ProgramCache):
    """An empty cache that counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(10, 10, lambda _live: False)
        self.asked = 0

    def find_open(self, key: tuple[str, str]) -> str | None:
        self.asked += 1
        return super().find_open(key)


def make_request(workflow_id: str) -> Request:
    return Request("default", CANCEL, workflow_id=workflow_id)


def make_queue(workers: int) -> tuple[RequestQueue, BatchWorkers, CountingCache]:
    cache, all_workers = CountingCache(), BatchWorkers(workers)
    return RequestQueue(cache, all_workers), all_workers, cache


def test_each_request_is_looked_at_once_however_many_wait() -> None:
    queue, workers, cache = make_queue(4)
    requests = [make_request(f"order-{number}") for number in range(20_000)]
    for request in requests:
        queue.append(request)

    taken: list[AnyRequest] = []
    for worker in cycle(workers.all):
        queue.release(worker)
        if not (batch := queue.take(worker, SMALLEST_SHARE)):
            break
        taken += batch

    assert taken == requests
    assert cache.asked == len(requests)


def test_requests_for_what_another_worker_holds_are_not_looked_at_again_until_it_is_done() -> None:
    queue, workers, cache = make_queue(4)
    first, second, *_ = workers.all
    requests = [make_request("hot") for _ in range(5_000)]
    queue.append(requests[0])
    assert queue.take(first, 10) == requests[:1]
    for request in requests[1:]:
        queue.append(request)
        assert queue.take(second, 10) == []
    assert cache.asked == len(requests)

    later = make_request("other")
    queue.append(later)
    assert queue.take(second, 10) == [later]
    queue.release(first)

    assert queue
    assert queue.take(first, 2_000) == requests[1:1_251], "a share of what waits, in the order of arrival"
    assert queue.clear() == requests[1_251:]
    assert not queue


@given(
    st.lists(st.sampled_from("abcd"), max_size=30),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.booleans()), max_size=30),
)
def test_requests_for_one_execution_keep_their_order_and_have_one_worker(
    ids: list[str], steps: list[tuple[int, int, bool]]
) -> None:
    queue, workers, _ = make_queue(3)
    requests = [make_request(one) for one in ids]
    for request in requests:
        queue.append(request)

    taken: list[AnyRequest] = []
    for slot, size, goes_back in steps:
        worker = workers.all[slot]
        queue.release(worker)
        batch = queue.take(worker, size)
        others = [other.holds for other in workers.all if other is not worker]
        assert all(("default", one.workflow_id) not in holds for one in batch for holds in others)
        if goes_back:  # the store was out of reach
            queue.release(worker)
            queue.put_first(batch)
        else:
            taken += batch
    taken += queue.clear()

    assert len(taken) == len(requests)
    for name in "abcd":
        assert [one for one in taken if one.workflow_id == name] == [one for one in requests if one.workflow_id == name]


def test_D2_the_activities_of_one_execution_let_callers_and_other_executions_in() -> None:
    queue, workers, _ = make_queue(1)
    (worker,) = workers.all
    ends = [Request("default", CANCEL, f"huge-{number % 2}") for number in range(3_000)]
    for request in ends:
        queue.append(request)
    assert len(queue.take(worker, 100)) == 100
    loop = asyncio.new_event_loop()
    call = Request("default", CANCEL, workflow_id="quick", future=loop.create_future())
    other = Request("default", CANCEL, "other")
    queue.append(call)
    queue.append(other)

    batch = queue.take(worker, 100)

    assert call in batch
    assert other in batch
    queue.put_first(batch)
    again = queue.take(worker, 20_000)
    places = {id(one): place for place, one in enumerate(ends)}
    for name in ("huge-0", "huge-1"):
        own = [places[id(one)] for one in again if isinstance(one, Request) and one.execution_id == name]
        assert own == sorted(own), "of one execution, in the order of arrival"
    assert not queue
    loop.close()
