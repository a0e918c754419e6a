"""Nodes are on the alert for a while after a process ended without leaving."""

from __future__ import annotations

from holdfast.engine.living_nodes import ALERT_TIME, LivingNodes


def test_process_that_is_gone_puts_on_the_alert_for_a_while() -> None:
    living = LivingNodes()
    living.update(["a", "b"], [], now=0)
    assert not living.is_alert(0)

    living.update(["a"], [], now=10)

    assert living.is_alert(10)
    assert living.is_alert(9 + ALERT_TIME)
    assert not living.is_alert(10 + ALERT_TIME)


def test_process_that_left_cleanly_or_joined_is_no_alert() -> None:
    living = LivingNodes()
    living.update(["a", "b"], [], now=0)

    living.update(["a", "c"], ["b"], now=10)

    assert living.processes == {"a", "c"}
    assert not living.is_alert(10)


def test_node_that_was_started_again_under_its_name_is_an_alert() -> None:
    living = LivingNodes()
    living.update(["a1"], [], now=0)

    living.update(["a2"], [], now=10)

    assert living.is_alert(10)


def test_process_is_alive_until_a_heartbeat_shows_that_it_is_not() -> None:
    living = LivingNodes()
    living.join(["earlier"], is_exclusive=False)
    assert living.is_alive("unknown"), "it may have joined after this node"
    assert not living.is_alive("earlier"), "this node has its name"
    assert not living.is_alive("")

    assert living.update(["a"], [], now=0)

    assert living.is_alive("a")
    assert not living.is_alive("unknown")
    assert not living.update(["a"], [], now=0), "nobody was taken to be alive by guess since the first"


def test_on_a_store_of_its_own_nobody_else_is_alive() -> None:
    living = LivingNodes()

    living.join([], is_exclusive=True)

    assert not living.is_alive("unknown")
