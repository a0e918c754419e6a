"""Seeds lead to every kind of step and call."""

from collections.abc import Iterator

import msgspec

from holdfast.simulation import plans
from holdfast.simulation.derived_generator import DERIVED_FAMILIES
from holdfast.simulation.generator import LARGEST, choose_families, make_scenario, size_of
from holdfast.simulation.plans import AnyStep, Plan
from holdfast.simulation.reaching import PERFORM_REACHING
from holdfast.simulation.scripted import PERFORM


def walk(steps: tuple[AnyStep, ...]) -> Iterator[AnyStep]:
    for step in steps:
        yield step
        match step:
            case plans.RunBranches():
                for branch in step.branches:
                    yield from walk(branch)
            case plans.RunChild():
                yield from walk(step.plan.steps)
            case plans.ContinueAsNew():
                yield from walk(step.steps)
            case plans.CleanUpWhenCancelled():
                yield from walk((*step.steps, *step.cleanup))


def test_every_kind_of_step_and_call_occurs() -> None:
    calls = [call for seed in range(400) for client in make_scenario(seed).clients for call in client]
    steps = [step for call in calls if isinstance(call, plans.StartCall) for step in walk(call.plan.steps)]
    steps += [step for call in calls if isinstance(call, plans.SignalWithStartCall) for step in walk(call.plan.steps)]

    every = set(PERFORM) | set(PERFORM_REACHING)
    assert {type(step) for step in steps} == every - {plans.TakePoison}, "poisons are drawn beside the scenario"
    assert {type(call) for call in calls} == set(plans.AnyCall.__args__)
    assert {step.kind for step in steps if isinstance(step, plans.RunActivity)} == set(plans.ActivityKind)
    assert {step.ending for step in steps if isinstance(step, plans.WaitForever)} == set(plans.EndlessWait)


def test_scenarios_grow_with_the_seed() -> None:
    assert size_of(5) == 0
    assert size_of(1) < size_of(301) < size_of(701)
    assert size_of(10**9 + 1) == LARGEST


def test_a_plan_is_data() -> None:
    for seed in range(20):
        for client in make_scenario(seed).clients:
            for call in client:
                if isinstance(call, plans.StartCall):
                    assert msgspec.json.decode(msgspec.json.encode(call.plan), type=Plan) == call.plan


def test_every_family_is_among_the_seeds_of_the_tests() -> None:
    found = {family for seed in range(200) for family in choose_families(seed, size_of(seed))}

    assert found == set(DERIVED_FAMILIES)
