"""From a seed to a scenario: programs whose outcome is certain, and clients who start, signal, cancel and end them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from holdfast.core.options import OnOpen, ParentClose
from holdfast.simulation import plans
from holdfast.simulation.plans import Act, AnyCall, AnyStep, Ending, Judged, Kind, Plan, Scenario, Token

SEEDS_PER_SIZE: Final = 100
LARGEST: Final = 8
MAILBOX: Final = "mailbox"
MAIL: Final = "mail"


def size_of(seed: int) -> int:
    """How large the scenario of a seed is: it grows slowly. Every fifth is tiny, so that each of its points can be tried."""
    return 0 if seed % 5 == 0 else min(1 + seed // SEEDS_PER_SIZE, LARGEST)


def make_scenario(seed: int) -> Scenario:
    """The scenario of a seed."""
    return Generator(seed, size_of(seed)).make()


class Generator:
    """Makes one scenario."""

    def __init__(self, seed: int, size: int) -> None:
        self.seed = seed
        self.size = size
        self.random = Random(f"holdfast scenario {seed}")
        self.mail = 0
        self.clients: list[list[AnyCall]] = [[] for _ in range(2 + (size > 2))]

    def make(self) -> Scenario:
        """All programs, then a mailbox for those who tell it something."""
        programs = [f"p{index}" for index in range(self.random.randint(1, 1 + self.size))]
        for workflow_id in programs:
            ProgramGenerator(self, workflow_id).make()
        if self.size and self.random.random() < 0.5:
            self.clients.append([plans.AwaitEnd(target=workflow_id) for workflow_id in programs])
        if self.size and self.random.random() < 0.3:
            self._make_bank()
        if self.size and self.random.random() < 0.3:
            self._make_relay()
        if self.mail:
            steps = (plans.Take(label=MAILBOX, name=MAIL, count=self.mail),)
            self.clients[0].insert(0, plans.Open(target=MAILBOX, plan=Plan(label=MAILBOX, steps=steps)))
        return Scenario(self.seed, tuple(map(tuple, self.clients)))

    def pause(self) -> int:
        """How long a client waits before a call."""
        return self.random.choice([0, 0, 1, 20, 400, 3_000])

    def _make_bank(self) -> None:
        """Signals to one id that starts as often as needed."""
        collect = plans.Collect(label="bank", name="coin", millis=self.random.choice([0, 5, 300]))
        self._share(Plan(label="bank", steps=(collect,), judged=Judged.BANK), "coin", self._count_shares())

    def _make_relay(self) -> None:
        """Signals to one id that continues with each."""
        shares = self._count_shares()
        relay = plans.Relay(label="relay", name="baton", left=sum(shares), millis=self.random.choice([0, 5, 300]))
        self._share(Plan(label="relay", steps=(relay,), judged=Judged.BANK), "baton", shares)

    def _count_shares(self) -> list[int]:
        return [self.random.randint(1, 2 + self.size) for _ in self.clients]

    def _share(self, plan: Plan, name: str, shares: list[int]) -> None:
        for index, client in enumerate(self.clients):
            for number in range(shares[index]):
                client.append(
                    plans.SendOrOpen(
                        target=plan.label,
                        plan=plan,
                        name=name,
                        token=Token(f"{plan.label}/{index}", number),
                        pause_millis=self.pause(),
                        is_doubled=self.random.random() < 0.2,
                    )
                )


class ProgramGenerator:
    """Makes one program and what its clients do to it."""

    def __init__(self, scenario: Generator, workflow_id: str) -> None:
        self.scenario = scenario
        self.random = scenario.random
        self.workflow_id = workflow_id
        self.owner = self.random.randrange(len(scenario.clients))
        self.has_branches = False
        self.sends: list[tuple[int, plans.Send]] = []
        self._count = 0
        self._handshakes: list[plans.Take] = []

    # --- the whole ---

    def make(self) -> None:
        """The plan, and the calls."""
        finishing: list[AnyCall] = []
        steps = self._steps(self.random.randint(1, 2 + self.scenario.size)) + self._end(finishing)
        judged = Judged.UNORDERED if self.has_branches else Judged.EXACT
        plan = Plan(label=self.workflow_id, steps=steps, judged=judged)
        owner = self.scenario.clients[self.owner]
        is_doubled = self.random.random() < 0.2
        owner.append(
            plans.Open(target=self.workflow_id, plan=plan, pause_millis=self.scenario.pause(), is_doubled=is_doubled)
        )
        for client, send in self.sends:
            self._send(client, send, plan)
        owner.extend(finishing)
        self._add_extras(plan, is_replaced=any(isinstance(one, plans.Replace) for one in finishing))

    def _send(self, client: int, send: plans.Send, plan: Plan) -> None:
        calls = self.scenario.clients[client]
        is_known = any(call.target == self.workflow_id for call in calls)
        if is_known and self.random.random() < 0.8:
            calls.append(send)
            return
        calls.append(
            plans.SendOrOpen(target=send.target, plan=plan, name=send.name, token=send.token, pause_millis=send.pause_millis)
        )

    def _add_extras(self, plan: Plan, *, is_replaced: bool) -> None:
        """What must not change the outcome: a second start, signals that nobody takes, somebody who waits for the end."""
        for index, client in enumerate(self.scenario.clients):
            if self.random.random() < 0.3:
                name, token = "junk", Token(f"{self.workflow_id}/junk/{index}")
                junk = plans.Send(
                    target=self.workflow_id,
                    name=name,
                    token=token,
                    is_junk=True,
                    pause_millis=self.scenario.pause(),
                )
                client.insert(self.random.randint(0, len(client)), junk)
            if self.random.random() < 0.15 and not is_replaced and index == self.owner:
                client.append(plans.Open(target=self.workflow_id, plan=plan))
        if self.random.random() < 0.5:
            self.scenario.clients[self.owner].append(plans.AwaitEnd(target=self.workflow_id))

    # --- steps ---

    def _label(self) -> str:
        self._count += 1
        return f"{self.workflow_id}.{self._count}"

    def _steps(self, number: int, *, is_outer: bool = True) -> tuple[AnyStep, ...]:
        return tuple(self._step(is_outer=is_outer) for _ in range(number))

    def _step(self, *, is_outer: bool) -> AnyStep:
        makers: list[Callable[[], AnyStep]] = [
            self._act, self._act, self._together, self._sleep, self._miss, self._note, self._patch, self._tell_nobody,
        ]  # fmt: skip
        if is_outer:
            makers += [
                self._take, self._take, self._drain, self._child, self._child, self._handshake, self._rushed, self._branches,
            ]  # fmt: skip
            if self.owner == 0:
                makers.append(self._tell)
        return self.random.choice(makers)()

    def _act(self) -> Act:
        kind = self.random.choice([Kind.GIVES, Kind.GIVES, *Kind])
        times = 0 if kind in (Kind.GIVES, Kind.REFUSES) else self.random.randint(1, 3)
        millis = self.random.choice([0, 0, 5, 100, 2_000])
        return Act(label=self._label(), kind=kind, times=times, millis=millis, is_awaited=self.random.random() < 0.9)

    def _together(self) -> AnyStep:
        acts = tuple(self._act() for _ in range(self.random.randint(2, 3 + self.scenario.size)))
        return plans.Together(label=self._label(), acts=acts)

    def _branches(self) -> AnyStep:
        self.has_branches = True
        branches = tuple(self._steps(self.random.randint(1, 2), is_outer=False) for _ in range(self.random.randint(2, 3)))
        way = self.random.choice(["gather", "group", "completed"])
        return plans.Branches(label=self._label(), branches=branches, way=way)

    def _sleep(self) -> AnyStep:
        return plans.Sleep(label=self._label(), millis=self.random.choice([0, 1, 50, 1_000, 10_000]))

    def _miss(self) -> AnyStep:
        way = self.random.choice(["timeout", "asyncio", "any"])
        return plans.Miss(label=self._label(), millis=self.random.choice([1, 50, 3_000]), way=way)

    def _note(self) -> AnyStep:
        return plans.Note(label=self._label())

    def _patch(self) -> AnyStep:
        return plans.Patch(label=self._label())

    def _tell(self) -> AnyStep:
        self.scenario.mail += 1
        return plans.Tell(label=self._label(), target=MAILBOX, name=MAIL)

    def _tell_nobody(self) -> AnyStep:
        return plans.Tell(label=self._label(), target="nobody", name=MAIL)

    # --- steps that clients serve ---

    def _take(self) -> AnyStep:
        label, count = self._label(), self.random.randint(1, 3)
        client = self.random.randrange(len(self.scenario.clients)) if self.owner else 0
        for number in range(count):
            self._send_later(client, label, Token(label, number))
        return plans.Take(label=label, name=label, count=count, is_timed=self.random.random() < 0.4)

    def _drain(self) -> AnyStep:
        label, client = self._label(), self.owner
        for number in range(self.random.randint(0, 3)):
            self._send_later(client, label, Token(label, number))
        self._send_later(client, f"{label}/gate", Token(f"{label}/gate"))
        return plans.Drain(label=label, name=label, gate=f"{label}/gate")

    def _send_later(self, client: int, name: str, token: Token) -> None:
        send = plans.Send(
            target=self.workflow_id,
            name=name,
            token=token,
            pause_millis=self.scenario.pause(),
            is_repeated=self.random.random() < 0.2,
            is_doubled=self.random.random() < 0.2,
        )
        self.sends.append((client, send))

    # --- children ---

    def _child(self) -> AnyStep:
        label = self._label()
        steps: list[AnyStep] = list(self._steps(self.random.randint(1, 2), is_outer=False))
        told = f"{label}/told" if self.random.random() < 0.4 else None
        if told is not None:
            steps.insert(0, plans.Take(label=told, name=told))
        if self.random.random() < 0.2:
            steps.append(plans.Fail(label=self._label()))
        elif self.random.random() < 0.3:
            steps.append(plans.Again(label=self._label(), steps=self._steps(1, is_outer=False)))
        return plans.Child(
            label=label,
            plan=Plan(label=f"{label}/child", steps=tuple(steps)),
            workflow_id=self.random.choice([None, f"{label}/child"]),
            told=told,
            is_awaited=self.random.random() < 0.8,
        )

    def _handshake(self) -> AnyStep:
        """A child that outlives us, if it may: it says when it has come to its wait, and we do not close before."""
        label = self._label()
        ending = self.random.choice([Ending.SIGNAL, Ending.SLEEP, Ending.ACTIVITY])
        hold: AnyStep = plans.Hold(label=f"{label}/hold", ending=ending, tell=self.workflow_id)
        policy = self.random.choice([ParentClose.CANCEL, ParentClose.TERMINATE])
        if self.random.random() < 0.5:
            hold = plans.Guarded(label=f"{label}/guard", steps=(hold,), cleanup=self._steps(1, is_outer=False))
        steps: tuple[AnyStep, ...] = (hold,)
        if self.random.random() < 0.3:
            steps = (plans.Again(label=f"{label}/again", steps=steps),)
        self._handshakes.append(plans.Take(label=f"{label}/hold", name=f"{label}/hold"))
        plan = Plan(label=f"{label}/child", steps=steps)
        return plans.Child(label=label, plan=plan, policy=policy, workflow_id=plan.label, is_awaited=False)

    def _rushed(self) -> AnyStep:
        """A child that we may end before it has begun: what it comes to do is open, how it ends is not."""
        label = self._label()
        plan = Plan(label=f"{label}/child", steps=(plans.Hold(label=f"{label}/hold"),), judged=Judged.STATUS)
        policy = self.random.choice([ParentClose.CANCEL, ParentClose.TERMINATE])
        workflow_id = self.random.choice([None, plan.label])
        return plans.Child(label=label, plan=plan, policy=policy, workflow_id=workflow_id, is_awaited=False)

    # --- ends ---

    def _end(self, finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        handshakes = tuple(self._handshakes)
        self._handshakes.clear()
        ends = [
            self._return, self._return, self._return, self._fail, self._fail_act, self._continue, self._hasten,
            self._be_cancelled, self._be_cancelled, self._be_terminated, self._be_replaced,
        ]  # fmt: skip
        return handshakes + self.random.choice(ends)(finishing)

    def _return(self, _finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        return ()

    def _fail(self, _finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        return (plans.Fail(label=self._label()),)

    def _fail_act(self, _finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        return (Act(label=self._label(), kind=Kind.FAILS, times=2, is_fatal=True),)

    def _continue(self, finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        label = self._label()
        return (plans.Again(label=label, steps=self._steps(self.random.randint(1, 2)) + self._end(finishing)),)

    def _hasten(self, finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        """Continue while activities are under way: the next run must not take their results for its own."""
        millis = self.random.choice([0, 0, 5])
        acts = [Act(label=self._label(), millis=millis) for _ in range(8)]
        following = (plans.Together(label=self._label(), acts=tuple(acts[4:])), *self._end(finishing))
        haste = plans.Haste(label=self._label(), acts=tuple(acts[:4]))
        return (haste, plans.Again(label=self._label(), steps=following))

    def _hold(self) -> plans.Hold:
        return plans.Hold(label=self._label(), ending=self.random.choice(list(Ending)))

    def _be_cancelled(self, finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        hold = self._hold()
        finishing.append(plans.Cancel(target=self.workflow_id, marker=hold.label))
        if self.random.random() < 0.3:
            return (hold,)
        guard = plans.Guarded(
            label=self._label(),
            steps=(hold,),
            cleanup=self._steps(self.random.randint(0, 2), is_outer=False),
            is_shielded=self.random.random() < 0.5,
            is_swallowed=self.random.random() < 0.4,
        )
        return (guard,)

    def _be_terminated(self, finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        hold = self._hold()
        finishing.append(plans.Terminate(target=self.workflow_id, marker=hold.label))
        return (hold,)

    def _be_replaced(self, finishing: list[AnyCall]) -> tuple[AnyStep, ...]:
        """Another is started in its place: refused at first, then by force."""
        hold = self._hold()
        following = Plan(label=f"{self.workflow_id}/next", steps=self._steps(1, is_outer=False))
        finishing.extend(
            plans.Replace(target=self.workflow_id, marker=hold.label, plan=following, on_open=on_open)
            for on_open in (OnOpen.FAIL, OnOpen.TERMINATE_EXISTING)
        )
        return (hold,)
