"""T6, N1: who is called dead after the store's clock was set."""

from __future__ import annotations

from holdfast.core.instants import SECOND
from holdfast.engine.activities.limits import RateLimit
from holdfast.engine.clock import SystemClock
from holdfast.engine.nodes.heartbeat import RenewedLease
from holdfast.engine.nodes.take_over import TakeOver
from holdfast.store.memory.store import MemoryStore
from holdfast.store.nodes import HeartbeatReply
from holdfast.store.rows import NodeRow

LEASE = 6 * SECOND
HOUR = 3600 * SECOND


class Observer:
    """The node "a", which sends a heartbeat every two seconds and sees what "b" sent last."""

    def __init__(self) -> None:
        self.store_time = 10 * HOUR
        self.steady = 0
        self.seen_at = self.store_time
        self._take_over = TakeOver(
            MemoryStore(), lambda _request: None, SystemClock(), "a", lease=LEASE, heartbeat=2 * SECOND
        )

    def beat(self) -> bool:
        """Whether "b" is called dead with the next heartbeat."""
        self.store_time += 2 * SECOND
        self.steady += 2 * SECOND
        rows = [NodeRow("a", self.store_time, 0), NodeRow("b", self.seen_at, 0)]
        reply = HeartbeatReply(self.store_time, rows, None, has_inbox=False, has_offers=False, before=None)
        return "b" in self._take_over.find_ended(RenewedLease(reply, self.steady, self.steady, True))


def test_node_whose_lease_ran_out_is_called_dead() -> None:
    observer = Observer()

    assert [observer.beat() for _ in range(4)] == [False, False, False, True]


def test_T6_dead_node_is_found_within_a_lease_though_the_stores_clock_was_set_back() -> None:
    observer = Observer()
    observer.beat()
    observer.store_time -= HOUR

    assert [observer.beat() for _ in range(5)] == [False, False, False, False, True]


def test_T6_living_node_is_not_called_dead_when_the_stores_clock_was_set_back() -> None:
    observer = Observer()
    observer.beat()
    observer.store_time -= HOUR

    for _ in range(10):
        assert not observer.beat()
        observer.seen_at = observer.store_time


def test_T6_rate_does_not_hold_up_activities_until_a_clock_that_was_set_back_has_caught_up() -> None:
    rate = RateLimit(2)
    rate.note(10 * HOUR)

    assert rate.wait_until(9 * HOUR) == 9 * HOUR + SECOND // 2
    assert rate.wait_until(9 * HOUR + SECOND // 2) is None
