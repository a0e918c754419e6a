"""Makes the steps of one program, and the signals of clients that they wait for."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.options import ParentClose
from holdfast.simulation import plans
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.plans import ActivityKind, AnyStep, Comparison, EndlessWait, Plan, RunActivity
from holdfast.simulation.scenario_draft import MAIL, MAILBOX, ScenarioDraft


class StepGenerator:
    """Makes the steps of one program, each of a kind that is drawn; `owner` is the client that starts the program."""

    def __init__(self, draft: ScenarioDraft, workflow_id: str, owner: int) -> None:
        self.draft = draft
        self.random = draft.random
        self.workflow_id = workflow_id
        self.owner = owner
        self.has_branches = False
        """Whether a step has concurrent branches, so that the order of decisions is open."""
        self.sends: list[tuple[int, plans.SignalCall]] = []
        """Signals that steps wait for, each with the client that sends it."""
        self._count = 0
        self._handshakes: list[plans.TakeSignals] = []

    def make_label(self) -> str:
        """The next label of the program: no two of its steps have the same."""
        self._count += 1
        return f"{self.workflow_id}.{self._count}"

    def make_steps(self, number: int, *, is_outer: bool = True) -> tuple[AnyStep, ...]:
        """Make so many steps. Only outer ones wait for signals of clients, start children or branch."""
        return tuple(self._step(is_outer=is_outer) for _ in range(number))

    def _step(self, *, is_outer: bool) -> AnyStep:
        makers: list[Callable[[], AnyStep]] = [
            self._activity, self._activity, self._activities, self._sleep, self._miss_signal, self._side_effect,
            self._patch, self._signal_nobody,
        ]  # fmt: skip
        if is_outer:
            makers += [
                self._take_signals, self._take_signals, self._drain_signals, self._child, self._child, self._handshake,
                self._child_ended_early, self._branches,
            ]  # fmt: skip
            if self.owner == 0:
                makers.append(self._signal_mailbox)
        return self.random.choice(makers)()

    def _activity(self) -> RunActivity:
        kind = self.random.choice([ActivityKind.GIVES, ActivityKind.GIVES, *ActivityKind])
        times = 0 if kind in (ActivityKind.GIVES, ActivityKind.REFUSES) else self.random.randint(1, 3)
        millis = self.random.choice([0, 0, 5, 100, 2_000])
        return RunActivity(
            label=self.make_label(), kind=kind, times=times, millis=millis, is_awaited=self.random.random() < 0.9
        )

    def _activities(self) -> AnyStep:
        acts = tuple(self._activity() for _ in range(self.random.randint(2, 3 + self.draft.size)))
        return plans.RunActivities(label=self.make_label(), acts=acts)

    def _branches(self) -> AnyStep:
        self.has_branches = True
        branches = tuple(
            self.make_steps(self.random.randint(1, 2), is_outer=False) for _ in range(self.random.randint(2, 3))
        )
        way = self.random.choice(["gather", "group", "completed"])
        return plans.RunBranches(label=self.make_label(), branches=branches, way=way)

    def _sleep(self) -> AnyStep:
        return plans.SleepStep(label=self.make_label(), millis=self.random.choice([0, 1, 50, 1_000, 10_000]))

    def _miss_signal(self) -> AnyStep:
        way = self.random.choice(["timeout", "asyncio", "any"])
        return plans.MissSignal(label=self.make_label(), millis=self.random.choice([1, 50, 3_000]), way=way)

    def _side_effect(self) -> AnyStep:
        return plans.RecordSideEffect(label=self.make_label())

    def _patch(self) -> AnyStep:
        return plans.AskForPatch(label=self.make_label())

    def _signal_mailbox(self) -> AnyStep:
        self.draft.mail += 1
        return plans.SignalWorkflow(label=self.make_label(), target=MAILBOX, name=MAIL)

    def _signal_nobody(self) -> AnyStep:
        return plans.SignalWorkflow(label=self.make_label(), target="nobody", name=MAIL)

    # --- steps that wait for signals of clients ---

    def _take_signals(self) -> AnyStep:
        label, count = self.make_label(), self.random.randint(1, 3)
        client = self.random.randrange(len(self.draft.clients)) if self.owner else 0
        for number in range(count):
            self._send_later(client, label, SignalToken(label, number))
        return plans.TakeSignals(label=label, name=label, count=count, is_timed=self.random.random() < 0.4)

    def _drain_signals(self) -> AnyStep:
        label, client = self.make_label(), self.owner
        for number in range(self.random.randint(0, 3)):
            self._send_later(client, label, SignalToken(label, number))
        self._send_later(client, f"{label}/gate", SignalToken(f"{label}/gate"))
        return plans.DrainSignals(label=label, name=label, gate=f"{label}/gate")

    def _send_later(self, client: int, name: str, token: SignalToken) -> None:
        send = plans.SignalCall(
            target=self.workflow_id,
            name=name,
            token=token,
            pause_millis=self.draft.draw_pause(),
            is_repeated=self.random.random() < 0.2,
            is_doubled=self.random.random() < 0.2,
        )
        self.sends.append((client, send))

    # --- children ---

    def _child(self) -> AnyStep:
        label = self.make_label()
        steps: list[AnyStep] = list(self.make_steps(self.random.randint(1, 2), is_outer=False))
        told = f"{label}/told" if self.random.random() < 0.4 else None
        if told is not None:
            steps.insert(0, plans.TakeSignals(label=told, name=told))
        if self.random.random() < 0.2:
            steps.append(plans.RaiseFailure(label=self.make_label()))
        elif self.random.random() < 0.3:
            steps.append(plans.ContinueAsNew(label=self.make_label(), steps=self.make_steps(1, is_outer=False)))
        return plans.RunChild(
            label=label,
            plan=Plan(label=f"{label}/child", steps=tuple(steps)),
            workflow_id=self.random.choice([None, f"{label}/child"]),
            told=told,
            is_awaited=self.random.random() < 0.8,
        )

    def _handshake(self) -> AnyStep:
        """A child that its parent's end cancels or terminates, not before the child has signalled that it waits."""
        label = self.make_label()
        ending = self.random.choice([EndlessWait.SIGNAL, EndlessWait.SLEEP, EndlessWait.ACTIVITY])
        hold: AnyStep = plans.WaitForever(label=f"{label}/hold", ending=ending, tell=self.workflow_id)
        policy = self.random.choice([ParentClose.CANCEL, ParentClose.TERMINATE])
        if self.random.random() < 0.5:
            hold = plans.CleanUpWhenCancelled(
                label=f"{label}/guard", steps=(hold,), cleanup=self.make_steps(1, is_outer=False)
            )
        steps: tuple[AnyStep, ...] = (hold,)
        if self.random.random() < 0.3:
            steps = (plans.ContinueAsNew(label=f"{label}/again", steps=steps),)
        self._handshakes.append(plans.TakeSignals(label=f"{label}/hold", name=f"{label}/hold"))
        plan = Plan(label=f"{label}/child", steps=steps)
        return plans.RunChild(label=label, plan=plan, policy=policy, workflow_id=plan.label, is_awaited=False)

    def _child_ended_early(self) -> AnyStep:
        """A child that its parent may end before it runs: only its status is certain."""
        label = self.make_label()
        plan = Plan(label=f"{label}/child", steps=(plans.WaitForever(label=f"{label}/hold"),), comparison=Comparison.STATUS)
        policy = self.random.choice([ParentClose.CANCEL, ParentClose.TERMINATE])
        workflow_id = self.random.choice([None, plan.label])
        return plans.RunChild(label=label, plan=plan, policy=policy, workflow_id=workflow_id, is_awaited=False)

    def take_handshakes(self) -> tuple[AnyStep, ...]:
        """The waits for children that signal their parent, which it must make before it ends; each is taken once."""
        handshakes = tuple(self._handshakes)
        self._handshakes.clear()
        return handshakes
