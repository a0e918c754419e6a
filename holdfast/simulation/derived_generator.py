"""Adds to the scenario of a seed families whose outcome follows from the calls of their clients alone.

Starts by broadcast signals, messages and updates; events by their modes; what people do with tasks; overlap policies of
schedules; limits of an org.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from holdfast.core.schedules import Overlap
from holdfast.simulation import derived_plans, plans, reach_plans
from holdfast.simulation.derived_plans import KEPT_SECONDS, ModeKind, TaskAct
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.plans import AnyCall, Comparison, Plan
from holdfast.simulation.reach_generator import FAMILIES, ReachGenerator

SKEW_MILLIS: Final = 4_000
"""More than the clocks of two nodes differ."""
CATCH_UPS: Final = (10, KEPT_SECONDS)
"""Seconds within which late fires are caught up with: the shortest that there is, and longer than any run."""


class DerivedGenerator(ReachGenerator):
    """Adds families to one scenario, each with programs and clients of its own."""

    def add(self, family: str) -> None:
        """Add the programs and clients of a family."""
        (DERIVED_FAMILIES[family])(self)

    # --- starts ---

    def make_begins(self) -> None:
        """Programs that broadcast signals and messages start; programs that updates start, again when they have ended."""
        self._add_client(
            *(
                plans.SummonCall(
                    target=f"z{number}",
                    plan=self._begin(f"z{number}"),
                    pause_millis=self._pause(),
                    is_doubled=self._may(0.3),
                )
                for number in range(self.random.randint(1, 2 + self.size))
            )
        )
        for client in range(2):
            self._add_client(
                *(
                    plans.StartByMessageCall(
                        target="y", plan=self._begin(f"y/{client}/{number}"), pause_millis=self._pause()
                    )
                    for number in range(self.random.randint(1, 2 + self.size // 2))
                )
            )
        take = reach_plans.TakeUpdates(label="x.1", name="add", count=1)
        for client in range(self.random.randint(1, 3)):
            self._add_client(
                *(
                    plans.UpdateWithStartCall(
                        target="x",
                        plan=Plan(label="x", steps=(take,), comparison=Comparison.DERIVED),
                        name="add",
                        token=SignalToken(f"x/{client}", number),
                        pause_millis=self._pause(),
                        is_repeated=self._may(0.2),
                        is_doubled=self._may(0.2),
                    )
                    for number in range(self.random.randint(1, 2 + self.size // 2))
                )
            )

    def _begin(self, label: str) -> Plan:
        return Plan(label=label, steps=(plans.SleepStep(label=f"{label}.1", millis=self.random.choice([0, 0, 50, 2_000])),))

    # --- events ---

    def make_modes(self) -> None:
        """Events that only those get who waited, or existed, when they were sent; events for programs that end before."""
        if self._may(0.7):
            self._make_notices()
        if self._may(0.7):
            self._make_memos()
        for index in range(self.random.randint(1, 1 + min(self.size, 3))):
            self._make_parcels(f"d{index}")

    def _send(self, kind: ModeKind, target: str, number: int, **options: bool) -> AnyCall:
        return derived_plans.SendModeCall(
            target=target,
            kind=kind,
            token=SignalToken(f"{target}/client", number),
            pause_millis=self._pause(),
            is_doubled=self._may(0.3),
            **options,
        )

    def _make_notices(self) -> None:
        names = self._names("w")
        calls: list[AnyCall] = [self._send(ModeKind.NOTICE, "board", 0)]
        calls += [
            self._start(name, derived_plans.ReceiveEvents(label=f"{name}.1", kind=ModeKind.NOTICE, topic="board"))
            for name in names
        ]
        calls.append(reach_plans.AwaitMarkersCall(target="", markers=tuple((name, f"{name}.1/0") for name in names)))
        calls.append(self._send(ModeKind.NOTICE, "board", 1))
        calls += [derived_plans.ExpectTokensCall(target=name, expected=(("board/client", (1,)),)) for name in names]
        self._add_client(*calls)

    def _make_memos(self) -> None:
        """One program that exists before the second memo and looks later, and one that is created after it."""
        early = derived_plans.ReceiveEvents(label="f0.1", kind=ModeKind.MEMO, topic="desk", gate="f0/gate")
        late = derived_plans.ReceiveEvents(label="f1.1", kind=ModeKind.MEMO, topic="desk")
        self._add_client(
            self._send(ModeKind.MEMO, "desk", 0),
            reach_plans.AwaitMarkersCall(target="", markers=(), pause_millis=SKEW_MILLIS),
            self._start("f0", early, comparison=Comparison.DERIVED),
            reach_plans.AwaitMarkersCall(target="", markers=(("f0", "f0/gate"),), pause_millis=SKEW_MILLIS),
            self._send(ModeKind.MEMO, "desk", 1),
            plans.SignalCall(target="f0", name="f0/gate", token=SignalToken("f0/gate"), pause_millis=SKEW_MILLIS),
            self._start("f1", late, comparison=Comparison.DERIVED),
            reach_plans.AwaitMarkersCall(target="", markers=(("f0", "f0.1/0"), ("f1", "f1.1/0"))),
            self._send(ModeKind.MEMO, "desk", 2),
            derived_plans.ExpectTokensCall(target="f0", expected=(("desk/client", (1,)),)),
            derived_plans.ExpectTokensCall(target="f1", expected=(("desk/client", (2,)),)),
        )

    def _make_parcels(self, name: str) -> None:
        """A program takes some of the events that are sent to it, and is ended with the others waiting for it."""
        kind = self.random.choice([ModeKind.PARCEL, ModeKind.PARCEL, ModeKind.LEAFLET])
        taken, left = self.random.randint(0, 2), self.random.randint(1, 3)
        receive = derived_plans.ReceiveEvents(label=f"{name}.1", kind=kind, topic=name, count=taken)
        hold = plans.WaitForever(label=f"{name}.2")
        ends = plans.CancelCall if self._may(0.5) else plans.TerminateCall
        sends = [
            self._send(kind, name, number, is_addressed=True, is_left=number >= taken) for number in range(taken + left)
        ]
        self._add_client(self._start(name, receive, hold), *sends, ends(target=name, marker=hold.label))

    # --- people ---

    def make_acts(self) -> None:
        """Tasks with which people do all that there is to do, one after the other."""
        for name in self._names("k"):
            ask = reach_plans.AskPerson(label=f"{name}.1")
            acts = tuple(self._draw_acts())
            call = derived_plans.TaskActsCall(
                target=name, task=ask.label, acts=acts, pause_millis=self._pause(), is_doubled=self._may(0.3)
            )
            self._add_client(self._start(name, ask), call)

    def _draw_acts(self) -> list[tuple[TaskAct, str]]:
        """What may follow on what was done: `holder` has claimed the task, `owner` alone may claim it."""
        acts: list[tuple[TaskAct, str]] = []
        holder = owner = ""
        for _ in range(self.random.randint(1, 4 + self.size)):
            act = self.random.choice([TaskAct.CLAIM, TaskAct.COMMENT, TaskAct.RELEASE, TaskAct.ASSIGN])
            by = self.random.choice(["ann", "bob"])
            if act is TaskAct.CLAIM and not holder:
                holder = owner or by
                acts.append((act, holder))
            elif act is TaskAct.RELEASE and holder:
                acts.append((act, holder))
                holder = ""
            elif act is TaskAct.ASSIGN:
                acts.append((TaskAct.REASSIGN if owner or holder else TaskAct.ASSIGN, by))
                holder, owner = "", by
            elif act is TaskAct.COMMENT:
                acts.append((act, by))
        if not holder:
            holder = owner or "ann"
            acts.append((TaskAct.CLAIM, holder))
        return [*acts, (TaskAct.COMPLETE, holder)]

    # --- schedules ---

    def make_overlaps(self) -> None:
        """Schedules with each of the policies, whose programs may take longer than the time between two fires."""
        for name in self._names("o"):
            every = self.random.choice([1, 2, 5])
            self._add_client(
                derived_plans.OverlapCall(
                    target=name,
                    label=f"{name}/run",
                    millis=self.random.choice([0, 1_500, 7_000]),
                    count=self.random.randint(2, 4),
                    every_seconds=every,
                    overlap=self.random.choice(list(Overlap)),
                    catch_up=self.random.choice(CATCH_UPS),
                    paused_millis=self.random.choice([0, 0, 500, 12_000]),
                    pause_millis=self._pause(),
                )
            )

    # --- limits ---

    def make_limits(self) -> None:
        """A client that fills an org up to its limits."""
        self._add_client(derived_plans.LimitsCall(target="l", pause_millis=self._pause()))


DERIVED_FAMILIES: Final[Mapping[str, Callable[[DerivedGenerator], None]]] = {
    **FAMILIES,
    "acts": DerivedGenerator.make_acts,
    "begins": DerivedGenerator.make_begins,
    "limits": DerivedGenerator.make_limits,
    "modes": DerivedGenerator.make_modes,
    "overlaps": DerivedGenerator.make_overlaps,
}
