"""Makes one program of a scenario, and the calls that clients make to it."""

from __future__ import annotations

from holdfast.core.options import OnOpen
from holdfast.simulation import plans
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.plans import ActivityKind, AnyCall, AnyStep, Comparison, EndlessWait, Plan, RunActivity
from holdfast.simulation.scenario_draft import ScenarioDraft
from holdfast.simulation.step_generator import StepGenerator


class ProgramGenerator:
    """Makes one program and the calls that clients make to it."""

    def __init__(self, draft: ScenarioDraft, workflow_id: str) -> None:
        self.draft = draft
        self.random = draft.random
        self.workflow_id = workflow_id
        self.owner = self.random.randrange(len(draft.clients))
        self.steps = StepGenerator(draft, workflow_id, self.owner)

    def make(self) -> None:
        """Make the plan, and add the calls to the clients."""
        end = EndGenerator(self.steps)
        steps = self.steps.make_steps(self.random.randint(1, 2 + self.draft.size)) + end.make()
        comparison = Comparison.UNORDERED if self.steps.has_branches else Comparison.EXACT
        plan = Plan(label=self.workflow_id, steps=steps, comparison=comparison)
        owner = self.draft.clients[self.owner]
        is_doubled = self.random.random() < 0.2
        owner.append(
            plans.StartCall(target=self.workflow_id, plan=plan, pause_millis=self.draft.draw_pause(), is_doubled=is_doubled)
        )
        for client, send in self.steps.sends:
            self._send(client, send, plan)
        owner.extend(end.calls)
        self._add_extras(plan, is_replaced=any(isinstance(one, plans.ReplaceCall) for one in end.calls))

    def _send(self, client: int, send: plans.SignalCall, plan: Plan) -> None:
        calls = self.draft.clients[client]
        is_known = any(call.target == self.workflow_id for call in calls)
        if is_known and self.random.random() < 0.8:
            calls.append(send)
            return
        calls.append(
            plans.SignalWithStartCall(
                target=send.target, plan=plan, name=send.name, token=send.token, pause_millis=send.pause_millis
            )
        )

    def _add_extras(self, plan: Plan, *, is_replaced: bool) -> None:
        """Add calls that must not change the outcome: a second start, signals that nobody takes, a wait for the result."""
        for index, client in enumerate(self.draft.clients):
            if self.random.random() < 0.3:
                name, token = "junk", SignalToken(f"{self.workflow_id}/junk/{index}")
                junk = plans.SignalCall(
                    target=self.workflow_id,
                    name=name,
                    token=token,
                    is_junk=True,
                    pause_millis=self.draft.draw_pause(),
                )
                client.insert(self.random.randint(0, len(client)), junk)
            if self.random.random() < 0.15 and not is_replaced and index == self.owner:
                client.append(plans.StartCall(target=self.workflow_id, plan=plan))
        if self.random.random() < 0.5:
            self.draft.clients[self.owner].append(plans.AwaitResultCall(target=self.workflow_id))


class EndGenerator:
    """Makes the end of one program: it returns, fails, continues as a new run, or is ended by calls of its owner."""

    def __init__(self, steps: StepGenerator) -> None:
        self.steps = steps
        self.random = steps.random
        self.calls: list[AnyCall] = []
        """The calls that end the program from outside, which its owner makes after it has started and signalled it."""

    def make(self) -> tuple[AnyStep, ...]:
        """Make the last steps, which follow all others. A program that continues as a new run ends once more."""
        handshakes = self.steps.take_handshakes()
        ends = [
            self._return, self._return, self._return, self._fail, self._fail_by_activity, self._continue,
            self._continue_early, self._be_cancelled, self._be_cancelled, self._be_terminated, self._be_replaced,
        ]  # fmt: skip
        return handshakes + self.random.choice(ends)()

    def _return(self) -> tuple[AnyStep, ...]:
        return ()

    def _fail(self) -> tuple[AnyStep, ...]:
        return (plans.RaiseFailure(label=self.steps.make_label()),)

    def _fail_by_activity(self) -> tuple[AnyStep, ...]:
        return (RunActivity(label=self.steps.make_label(), kind=ActivityKind.FAILS, times=2, is_fatal=True),)

    def _continue(self) -> tuple[AnyStep, ...]:
        label = self.steps.make_label()
        return (plans.ContinueAsNew(label=label, steps=self.steps.make_steps(self.random.randint(1, 2)) + self.make()),)

    def _continue_early(self) -> tuple[AnyStep, ...]:
        """Continue as a new run while activities run: the next run must not take their results for its own."""
        millis = self.random.choice([0, 0, 5])
        acts = [RunActivity(label=self.steps.make_label(), millis=millis) for _ in range(8)]
        following = (plans.RunActivities(label=self.steps.make_label(), acts=tuple(acts[4:])), *self.make())
        haste = plans.RunUntilFirst(label=self.steps.make_label(), acts=tuple(acts[:4]))
        return (haste, plans.ContinueAsNew(label=self.steps.make_label(), steps=following))

    def _wait_forever(self) -> plans.WaitForever:
        return plans.WaitForever(label=self.steps.make_label(), ending=self.random.choice(list(EndlessWait)))

    def _be_cancelled(self) -> tuple[AnyStep, ...]:
        hold = self._wait_forever()
        self.calls.append(plans.CancelCall(target=self.steps.workflow_id, marker=hold.label))
        if self.random.random() < 0.3:
            return (hold,)
        guard = plans.CleanUpWhenCancelled(
            label=self.steps.make_label(),
            steps=(hold,),
            cleanup=self.steps.make_steps(self.random.randint(0, 2), is_outer=False),
            is_shielded=self.random.random() < 0.5,
            is_swallowed=self.random.random() < 0.4,
        )
        return (guard,)

    def _be_terminated(self) -> tuple[AnyStep, ...]:
        hold = self._wait_forever()
        self.calls.append(plans.TerminateCall(target=self.steps.workflow_id, marker=hold.label))
        return (hold,)

    def _be_replaced(self) -> tuple[AnyStep, ...]:
        """Another program is started with its workflow id: refused first, then with termination of the open one."""
        hold = self._wait_forever()
        following = Plan(label=f"{self.steps.workflow_id}/next", steps=self.steps.make_steps(1, is_outer=False))
        self.calls.extend(
            plans.ReplaceCall(target=self.steps.workflow_id, marker=hold.label, plan=following, on_open=on_open)
            for on_open in (OnOpen.FAIL, OnOpen.TERMINATE_EXISTING)
        )
        return (hold,)
