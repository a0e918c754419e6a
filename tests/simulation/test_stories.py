"""Small scenarios, each of which the engine once got wrong: told by hand, so that they stay whatever seeds come to mean.

Each is run undisturbed, on three nodes with all kinds of faults, and on SQLite with a crash at every point.
"""

from collections.abc import Mapping

import pytest

from holdfast.core.options import OnOpen, ParentClose
from holdfast.simulation import plans
from holdfast.simulation.environments import MemoryEnvironment, SqliteEnvironment
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.plans import ActivityKind, AnyStep, Comparison, EndlessWait, Plan, RunActivity, Scenario
from holdfast.simulation.seeds import SimulationSummary, compare_runs, make_folder

WORLDS = range(6)
"""Seeds of the worlds in which a story is told."""

Clients = tuple[tuple[plans.AnyCall, ...], ...]


def plan(label: str, *steps: AnyStep, comparison: Comparison = Comparison.EXACT) -> Plan:
    return Plan(label=label, steps=steps, comparison=comparison)


def left_behind(child: Plan, policy: ParentClose) -> plans.RunChild:
    return plans.RunChild(label="c", plan=child, workflow_id="c", policy=policy, is_awaited=False)


def start(*steps: AnyStep, target: str = "p", is_doubled: bool = False) -> plans.StartCall:
    return plans.StartCall(target=target, plan=plan(target, *steps), is_doubled=is_doubled)


def send(name: str, number: int = 0, *, is_doubled: bool = False, is_repeated: bool = False) -> plans.SignalCall:
    token = SignalToken(name, number)
    return plans.SignalCall(target="p", name=name, token=token, is_doubled=is_doubled, is_repeated=is_repeated)


def share(shared: Plan, name: str, *, clients: int, each: int) -> Clients:
    return tuple(
        tuple(
            plans.SignalWithStartCall(
                target=shared.label, plan=shared, name=name, token=SignalToken(f"c{client}", number), is_doubled=True
            )
            for number in range(each)
        )
        for client in range(clients)
    )


def acts(first: int, last: int) -> tuple[RunActivity, ...]:
    return tuple(RunActivity(label=f"a{number}") for number in range(first, last))


AGAIN = plans.ContinueAsNew(label="again", steps=(RunActivity(label="after", kind=ActivityKind.FLAKY, times=1),))
HOLD = plans.WaitForever(label="hold")
CONTINUING = plan("c", plans.ContinueAsNew(label="again", steps=(plans.WaitForever(label="hold", tell="p"),)))
CANCEL, TERMINATE = ParentClose.CANCEL, ParentClose.TERMINATE
AWAIT_CHILD = plans.TakeSignals(label="hold", name="hold")
COLLECT = plan("bank", plans.CollectSignals(label="bank", name="coin", millis=5), comparison=Comparison.SHARED_SIGNALS)
RELAY = plan("relay", plans.RelaySignals(label="relay", name="baton", left=6), comparison=Comparison.SHARED_SIGNALS)
ACTIVITY = RunActivity(label="a")
RUSHED = plan("c", HOLD, comparison=Comparison.STATUS)

STORIES: Mapping[str, Clients] = {
    "the end of a child that continued reaches its parent": ((start(plans.RunChild(label="c", plan=plan("c", AGAIN))),),),
    "a child that continued is cancelled with its parent": ((start(left_behind(CONTINUING, CANCEL), AWAIT_CHILD),),),
    "a child that continued is terminated with its parent": ((start(left_behind(CONTINUING, TERMINATE), AWAIT_CHILD),),),
    "a child may be cancelled before its start was handled": ((start(left_behind(RUSHED, CANCEL)),),),
    "a child may be terminated before its start was handled": ((start(left_behind(RUSHED, TERMINATE), ACTIVITY),),),
    "results of the old run are not those of the next": (
        (
            start(
                plans.RunUntilFirst(label="haste", acts=acts(0, 4)),
                plans.ContinueAsNew(label="again", steps=(plans.RunActivities(label="both", acts=acts(4, 8)),)),
            ),
        ),
    ),
    "a request that is made twice takes effect once": (
        (
            start(plans.TakeSignals(label="t", name="s", count=3), RunActivity(label="a"), is_doubled=True),
            send("s", 0, is_doubled=True),
            send("s", 1, is_repeated=True),
            send("s", 2, is_doubled=True, is_repeated=True),
            plans.AwaitResultCall(target="p"),
        ),
    ),
    "no signal is lost or doubled where every signal starts or wakes": share(COLLECT, "coin", clients=3, each=3),
    "no signal is lost or doubled where every signal continues": share(RELAY, "baton", clients=3, each=2),
    "whoever waits for a result hears of it on every node": (
        (start(plans.TakeSignals(label="t", name="s"), RunActivity(label="a", millis=4_000)), send("s")),
        (plans.AwaitResultCall(target="p"),),
        (plans.AwaitResultCall(target="p"),),
    ),
    "a cancellation is cleaned up after and may be swallowed": (
        (
            start(
                plans.CleanUpWhenCancelled(
                    label="g",
                    steps=(plans.WaitForever(label="hold", ending=EndlessWait.ALL),),
                    cleanup=(
                        RunActivity(label="clean", kind=ActivityKind.FLAKY, times=2),
                        plans.SleepStep(label="s", millis=50),
                    ),
                    is_shielded=True,
                    is_swallowed=True,
                )
            ),
            plans.CancelCall(target="p", marker="hold"),
        ),
    ),
    "an execution is replaced by force": (
        (
            start(plans.WaitForever(label="hold", ending=EndlessWait.ACTIVITY)),
            plans.ReplaceCall(target="p", marker="hold", plan=plan("n"), on_open=OnOpen.FAIL),
            plans.ReplaceCall(target="p", marker="hold", plan=plan("n", ACTIVITY), on_open=OnOpen.TERMINATE_EXISTING),
            plans.AwaitResultCall(target="p"),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_on_three_nodes(story: str) -> None:
    for seed in WORLDS:
        compare_runs(MemoryEnvironment(Scenario(seed, STORIES[story]), 3), seed, SimulationSummary("memory", seed))


@pytest.mark.parametrize("story", STORIES)
def test_on_sqlite_with_a_crash_at_every_point(story: str) -> None:
    summary = SimulationSummary("sqlite", 0)

    with make_folder() as folder:
        compare_runs(SqliteEnvironment(Scenario(0, STORIES[story]), folder, most_exhaustive=1_000), 0, summary)

    assert summary.runs > 20
