"""Makes the scenario of a seed: programs whose outcome is certain, and clients that start, signal and end them.

The order of random choices is part of a seed: changing it changes every scenario.
"""

from __future__ import annotations

from random import Random
from typing import Final

from holdfast.simulation import plans
from holdfast.simulation.derived_generator import DERIVED_FAMILIES, DerivedGenerator
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.plans import Comparison, Plan, Scenario
from holdfast.simulation.program_generator import ProgramGenerator
from holdfast.simulation.scenario_draft import MAIL, MAILBOX, ScenarioDraft

SEEDS_PER_SIZE: Final = 100
"""After so many seeds scenarios are one size larger."""
LARGEST: Final = 8
"""The largest size of a scenario."""

TINY_SEEDS: Final = 10
"""Of so many seeds one is tiny and has a family."""


def size_of(seed: int) -> int:
    """The size of a seed's scenario, which grows slowly. Every fifth is tiny, to try a crash at each fault point."""
    return 0 if seed % 5 == 0 else min(1 + seed // SEEDS_PER_SIZE, LARGEST)


def choose_families(seed: int, size: int) -> list[str]:
    """The families of a seed: none or one of a tiny or small scenario, up to two of a larger one."""
    random = Random(f"holdfast families {seed}")
    if size == 0:
        return [random.choice(sorted(DERIVED_FAMILIES))] if seed % TINY_SEEDS == TINY_SEEDS // 2 else []
    return sorted(random.sample(sorted(DERIVED_FAMILIES), random.randint(0, 1 + (size > 2))))


def make_scenario(seed: int) -> Scenario:
    """Make the scenario of a seed, always the same."""
    return Generator(ScenarioDraft(seed, size_of(seed))).make()


def make_family_scenario(seed: int, family: str) -> Scenario:
    """Make a scenario that has nothing but one family, to try that out."""
    draft = ScenarioDraft(seed, size_of(seed))
    draft.clients = [[plans.StartCall(target="p0", plan=Plan(label="p0", steps=(plans.SleepStep(label="p0.1", millis=1),)))]]
    DerivedGenerator(draft).add(family)
    return Scenario(seed, tuple(map(tuple, draft.clients)))


class Generator:
    """Makes the scenario of one seed."""

    def __init__(self, draft: ScenarioDraft) -> None:
        self.draft = draft
        self.random = draft.random

    def make(self) -> Scenario:
        """Make all programs, and a mailbox if programs signal it."""
        programs = [f"p{index}" for index in range(self.random.randint(1, 1 + self.draft.size))]
        for workflow_id in programs:
            ProgramGenerator(self.draft, workflow_id).make()
        if self.draft.size and self.random.random() < 0.5:
            self.draft.clients.append([plans.AwaitResultCall(target=workflow_id) for workflow_id in programs])
        if self.draft.size and self.random.random() < 0.3:
            self._make_shared()
        if self.draft.size and self.random.random() < 0.3:
            self._make_relay()
        if self.draft.mail:
            steps = (plans.TakeSignals(label=MAILBOX, name=MAIL, count=self.draft.mail),)
            self.draft.clients[0].insert(0, plans.StartCall(target=MAILBOX, plan=Plan(label=MAILBOX, steps=steps)))
        if self.draft.size:
            self._make_ordered()
        for family in choose_families(self.draft.seed, self.draft.size):
            DerivedGenerator(self.draft).add(family)
        return Scenario(self.draft.seed, tuple(map(tuple, self.draft.clients)))

    def _make_ordered(self) -> None:
        """Numbered signals of each client to one program, by every address: they must arrive in the order of the calls."""
        shares = [1 + share for share in self._count_shares()]
        steps: tuple[plans.AnyStep, ...] = (plans.TakeSignals(label="queue", name="item", count=sum(shares)),)
        plan = Plan(label="queue", steps=steps, comparison=Comparison.SHARED_SIGNALS)
        for index, client in enumerate(self.draft.clients):
            for number in range(shares[index]):
                token, pause = SignalToken(f"queue/{index}", number), self.draft.draw_pause()
                draw = self.random.random()
                if number == 0:
                    client.append(
                        plans.SignalWithStartCall(target="queue", plan=plan, name="item", token=token, pause_millis=pause)
                    )
                else:
                    client.append(
                        plans.OrderedSignalCall(
                            target="queue",
                            name="item",
                            token=token,
                            pause_millis=pause,
                            by_execution_id=draw < 0.6,
                            in_transaction=0.4 < draw < 0.8,
                        )
                    )

    def _make_shared(self) -> None:
        """Signals with start to one workflow id, which is started as often as needed."""
        collect = plans.CollectSignals(label="bank", name="coin", millis=self.random.choice([0, 5, 300]))
        self._share(Plan(label="bank", steps=(collect,), comparison=Comparison.SHARED_SIGNALS), "coin", self._count_shares())

    def _make_relay(self) -> None:
        """Signals with start to one workflow id, which continues as a new run with each signal."""
        shares = self._count_shares()
        relay = plans.RelaySignals(label="relay", name="baton", left=sum(shares), millis=self.random.choice([0, 5, 300]))
        self._share(Plan(label="relay", steps=(relay,), comparison=Comparison.SHARED_SIGNALS), "baton", shares)

    def _count_shares(self) -> list[int]:
        return [self.random.randint(1, 2 + self.draft.size) for _ in self.draft.clients]

    def _share(self, plan: Plan, name: str, shares: list[int]) -> None:
        for index, client in enumerate(self.draft.clients):
            for number in range(shares[index]):
                client.append(
                    plans.SignalWithStartCall(
                        target=plan.label,
                        plan=plan,
                        name=name,
                        token=SignalToken(f"{plan.label}/{index}", number),
                        pause_millis=self.draft.draw_pause(),
                        is_doubled=self.random.random() < 0.2,
                    )
                )
