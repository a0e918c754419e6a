"""Small scenarios, each of which the engine once got wrong: told by hand, so that they stay whatever seeds come to mean.

Each is run undisturbed, on three nodes with all kinds of faults, and on SQLite with a crash at every point.
"""

from collections.abc import Mapping

import pytest

from holdfast.core.options import OnOpen, ParentClose
from holdfast.simulation import plans
from holdfast.simulation.plans import Act, AnyStep, Ending, Judged, Kind, Plan, Scenario, Token
from holdfast.simulation.seeds import Summary, judge, make_folder
from holdfast.simulation.theatres import OwnFile, SharedMemory

WORLDS = range(6)
"""Seeds of the worlds in which a story is told."""

Clients = tuple[tuple[plans.AnyCall, ...], ...]


def plan(label: str, *steps: AnyStep, judged: Judged = Judged.EXACT) -> Plan:
    return Plan(label=label, steps=steps, judged=judged)


def left_behind(child: Plan, policy: ParentClose) -> plans.Child:
    return plans.Child(label="c", plan=child, workflow_id="c", policy=policy, is_awaited=False)


def start(*steps: AnyStep, target: str = "p", is_doubled: bool = False) -> plans.Open:
    return plans.Open(target=target, plan=plan(target, *steps), is_doubled=is_doubled)


def send(name: str, number: int = 0, *, is_doubled: bool = False, is_repeated: bool = False) -> plans.Send:
    token = Token(name, number)
    return plans.Send(target="p", name=name, token=token, is_doubled=is_doubled, is_repeated=is_repeated)


def share(shared: Plan, name: str, *, clients: int, each: int) -> Clients:
    return tuple(
        tuple(
            plans.SendOrOpen(target=shared.label, plan=shared, name=name, token=Token(f"c{client}", number), is_doubled=True)
            for number in range(each)
        )
        for client in range(clients)
    )


def acts(first: int, last: int) -> tuple[Act, ...]:
    return tuple(Act(label=f"a{number}") for number in range(first, last))


AGAIN = plans.Again(label="again", steps=(Act(label="after", kind=Kind.FLAKY, times=1),))
HOLD = plans.Hold(label="hold")
CONTINUING = plan("c", plans.Again(label="again", steps=(plans.Hold(label="hold", tell="p"),)))
CANCEL, TERMINATE = ParentClose.CANCEL, ParentClose.TERMINATE
AWAIT_CHILD = plans.Take(label="hold", name="hold")
COLLECT = plan("bank", plans.Collect(label="bank", name="coin", millis=5), judged=Judged.BANK)
RELAY = plan("relay", plans.Relay(label="relay", name="baton", left=6), judged=Judged.BANK)
RUSHED = plan("c", HOLD, judged=Judged.STATUS)

STORIES: Mapping[str, Clients] = {
    "the end of a child that continued reaches its parent": ((start(plans.Child(label="c", plan=plan("c", AGAIN))),),),
    "a child that continued is cancelled with its parent": ((start(left_behind(CONTINUING, CANCEL), AWAIT_CHILD),),),
    "a child that continued is terminated with its parent": ((start(left_behind(CONTINUING, TERMINATE), AWAIT_CHILD),),),
    "a child may be cancelled before its start was handled": ((start(left_behind(RUSHED, CANCEL)),),),
    "a child may be terminated before its start was handled": ((start(left_behind(RUSHED, TERMINATE), Act(label="a")),),),
    "results of the old run are not those of the next": (
        (
            start(
                plans.Haste(label="haste", acts=acts(0, 4)),
                plans.Again(label="again", steps=(plans.Together(label="both", acts=acts(4, 8)),)),
            ),
        ),
    ),
    "a request that is made twice takes effect once": (
        (
            start(plans.Take(label="t", name="s", count=3), Act(label="a"), is_doubled=True),
            send("s", 0, is_doubled=True),
            send("s", 1, is_repeated=True),
            send("s", 2, is_doubled=True, is_repeated=True),
            plans.AwaitEnd(target="p"),
        ),
    ),
    "no signal is lost or doubled where every signal starts or wakes": share(COLLECT, "coin", clients=3, each=3),
    "no signal is lost or doubled where every signal continues": share(RELAY, "baton", clients=3, each=2),
    "whoever waits for a result hears of it on every node": (
        (start(plans.Take(label="t", name="s"), Act(label="a", millis=4_000)), send("s")),
        (plans.AwaitEnd(target="p"),),
        (plans.AwaitEnd(target="p"),),
    ),
    "a cancellation is cleaned up after and may be swallowed": (
        (
            start(
                plans.Guarded(
                    label="g",
                    steps=(plans.Hold(label="hold", ending=Ending.ALL),),
                    cleanup=(Act(label="clean", kind=Kind.FLAKY, times=2), plans.Sleep(label="s", millis=50)),
                    is_shielded=True,
                    is_swallowed=True,
                )
            ),
            plans.Cancel(target="p", marker="hold"),
        ),
    ),
    "an execution is replaced by force": (
        (
            start(plans.Hold(label="hold", ending=Ending.ACTIVITY)),
            plans.Replace(target="p", marker="hold", plan=plan("n"), on_open=OnOpen.FAIL),
            plans.Replace(target="p", marker="hold", plan=plan("n", Act(label="a")), on_open=OnOpen.TERMINATE_EXISTING),
            plans.AwaitEnd(target="p"),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_on_three_nodes(story: str) -> None:
    for seed in WORLDS:
        judge(SharedMemory(Scenario(seed, STORIES[story]), 3), seed, Summary("memory", seed))


@pytest.mark.parametrize("story", STORIES)
def test_on_sqlite_with_a_crash_at_every_point(story: str) -> None:
    summary = Summary("sqlite", 0)

    with make_folder() as folder:
        judge(OwnFile(Scenario(0, STORIES[story]), folder, most_swept=1_000), 0, summary)

    assert summary.runs > 20
