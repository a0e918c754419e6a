"""Poison turns: which of them a seed meets beside its programs, and what feeds each of them.

A poison does harm whenever one of its turns is taken, until it is cured; then its plan must go on to its end, with all that
waited for it. All that exists because of poisons has a label with one prefix, so that what the programs of the seed did can
be compared with the undisturbed run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from random import Random
from typing import Final

import msgspec

from holdfast.simulation import plans
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.plans import AnyCall, AnyStep, Plan, PoisonKind

PREFIX: Final = "poison"
"""With what the labels of all plans begin that are no programs of the scenario."""
ENDING: Final = frozenset({PoisonKind.ENDS_PROCESS, PoisonKind.ENDS_IN_REPLAY})
"""The kinds whose turns end their process."""
REFUSED: Final = frozenset({PoisonKind.REFUSED, PoisonKind.TIMED_OUT, PoisonKind.CUT, PoisonKind.SHORTAGE})
"""The kinds whose turns the store does not take."""
SHARED_ONLY: Final = frozenset({PoisonKind.TIMED_OUT, PoisonKind.CUT})
"""The kinds that need a database server."""
LATE: Final = "late"
"""The name of the signals that are sent to a poison while it does its harm and while it is blocked."""


class PoisonFeed(StrEnum):
    """What arrives for a poison when it takes its poison turn."""

    ACTIVITY = "activity"
    """The result of its activity."""
    TIMER = "timer"
    SIGNAL = "signal"
    """A signal of a client."""
    TOLD = "told"
    """A signal of another workflow."""
    CHILD = "child"
    """Its start: it is a child, and its first turn is the poison turn."""


class Poison(msgspec.Struct, frozen=True):
    """One poison execution: its workflow id, what its turn does, and what feeds it."""

    workflow_id: str
    kind: PoisonKind
    feed: PoisonFeed
    plan: Plan
    calls: tuple[AnyCall, ...]
    """What its client does: start it, feed it, and send it signals while it does harm."""
    is_signalled_late: bool = False
    """Whether further signals are sent only when it is blocked.

    Before, each may end a process beside those by which the poison is found: on a shared store, a turn that only a call asks
    for leaves no mark; and a turn that takes a signal and does no harm clears what is held against its execution.
    """


def is_of_poisons(plan: Plan) -> bool:
    """Whether a plan is no program of the scenario, but exists because of poisons."""
    return plan.label.startswith(PREFIX)


def draw_poisons(random: Random, *, is_shared: bool, only: Collection[PoisonKind] = ()) -> list[Poison]:
    """Draw one or two poisons, of `only` these kinds if some are named.

    Those that only a database server can meet are drawn where there `is_shared` store.
    """
    kinds = [kind for kind in PoisonKind if is_shared or kind not in SHARED_ONLY]
    kinds += sorted(ENDING) * 2
    kinds = [kind for kind in kinds if kind in only] or kinds
    poisons = []
    for number in range(random.choice([1, 1, 2])):
        kind = random.choice(kinds)
        feed = random.choice(_find_feeds(kind, is_shared=is_shared))
        poisons.append(_draw_poison(random, f"{PREFIX}/{number}", kind, feed))
    return poisons


def count_uncounted_ends(poison: Poison, others: int) -> int:
    """How many processes a poison may end without a note in its row that counts it, in a run with so many other poisons.

    One, by which it becomes a suspect; on the way from the process that ran its activity to another it is replayed before
    that; and a node that keeps it apart, since it shared a batch with another poison, may not know yet that it is a suspect.
    """
    is_replayed = poison.kind is PoisonKind.ENDS_IN_REPLAY and poison.feed is PoisonFeed.ACTIVITY
    return 1 + is_replayed + others


def _find_feeds(kind: PoisonKind, *, is_shared: bool) -> list[PoisonFeed]:
    """What may feed a poison of a kind.

    A first turn that fails, or is refused, ends its execution, or leaves nothing behind. On a shared store, a turn that only
    a client's call asks for leaves no mark: if it ends the process, nothing tells that to the others.
    """
    feeds = [PoisonFeed.ACTIVITY, PoisonFeed.TIMER, PoisonFeed.TOLD]
    if kind is PoisonKind.ENDS_PROCESS:
        feeds.append(PoisonFeed.CHILD)
    if kind not in ENDING or not is_shared:
        feeds.append(PoisonFeed.SIGNAL)
    return feeds


def _draw_poison(random: Random, workflow_id: str, kind: PoisonKind, feed: PoisonFeed) -> Poison:
    late = 0 if feed is PoisonFeed.CHILD else random.randint(0, 3)
    steps = [*_make_feed(random, workflow_id, feed), plans.TakePoison(label=f"{workflow_id}/turn", kind=kind)]
    if kind is PoisonKind.ENDS_IN_REPLAY:
        steps.insert(0, plans.TakePoison(label=f"{workflow_id}/early", kind=kind, is_early=True))
    if late:
        steps.append(plans.TakeSignals(label=f"{workflow_id}/{LATE}", name=LATE, count=late))
    plan = Plan(label=workflow_id, steps=tuple(steps))
    return Poison(workflow_id, kind, feed, plan, tuple(_make_calls(random, plan, feed, late)), kind in ENDING)


def _make_feed(random: Random, workflow_id: str, feed: PoisonFeed) -> Sequence[AnyStep]:
    label, millis = f"{workflow_id}/feed", random.choice([1, 5, 100, 2_000])
    match feed:
        case PoisonFeed.ACTIVITY:
            return [plans.RunActivity(label=label, millis=millis)]
        case PoisonFeed.TIMER:
            return [plans.SleepStep(label=label, millis=millis)]
        case PoisonFeed.SIGNAL | PoisonFeed.TOLD:
            return [plans.TakeSignals(label=label, name="feed")]
    return []


def _make_calls(random: Random, plan: Plan, feed: PoisonFeed, late: int) -> list[AnyCall]:
    target, begins_after = plan.label, random.choice([0, 20, 400, 3_000])
    if feed is PoisonFeed.CHILD:
        child = plans.RunChild(label=f"{target}/child", plan=plan, workflow_id=target)
        parent = Plan(label=f"{target}/parent", steps=(child,))
        return [plans.StartCall(target=parent.label, plan=parent, pause_millis=begins_after)]
    calls: list[AnyCall] = [plans.StartCall(target=target, plan=plan, pause_millis=begins_after)]
    if feed is PoisonFeed.TOLD:
        told = plans.SignalWorkflow(label=f"{target}/tell", target=target, name="feed")
        teller = Plan(label=f"{target}/teller", steps=(told,))
        calls.append(plans.StartCall(target=teller.label, plan=teller))
    if feed is PoisonFeed.SIGNAL:
        calls.append(plans.SignalCall(target=target, name="feed", token=SignalToken(target)))
    for number in range(late):
        pause = random.choice([0, 20, 400, 3_000, 20_000])
        token = SignalToken(f"{target}/{LATE}", number)
        calls.append(plans.SignalCall(target=target, name=LATE, token=token, pause_millis=pause))
    return calls
