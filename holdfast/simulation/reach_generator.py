"""Adds to the scenario of a seed what reaches programs beside signals: messages, broadcasts, events, updates, people.

And schedules and pauses. Each family has programs and clients of its own, and a random source of its own: the rest of a
scenario does not depend on it. The outcome stays certain, as that of all programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from holdfast.simulation import plans, reach_plans
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.plans import AnyCall, AnyStep, Comparison, Plan
from holdfast.simulation.reach_plans import PauseKind
from holdfast.simulation.scenario_draft import ScenarioDraft

PAUSES: Final = (0, 0, 1, 20, 400, 3_000)
"""Milliseconds that a client waits before a call, at random."""


class ReachGenerator:
    """Adds families to one scenario, each with programs and clients of its own."""

    def __init__(self, draft: ScenarioDraft) -> None:
        self.size = draft.size
        self.draft = draft
        self.random = Random(f"holdfast reach {draft.seed}")

    def add(self, family: str) -> None:
        """Add the programs and clients of a family."""
        FAMILIES[family](self)

    # --- parts ---

    def _add_client(self, *calls: AnyCall) -> list[AnyCall]:
        client = list(calls)
        self.draft.clients.append(client)
        return client

    def _pause(self) -> int:
        return self.random.choice(PAUSES)

    def _start(self, label: str, *steps: AnyStep, comparison: Comparison = Comparison.EXACT) -> plans.StartCall:
        plan = Plan(label=label, steps=steps, comparison=comparison)
        return plans.StartCall(target=label, plan=plan, pause_millis=self._pause())

    def _names(self, letter: str) -> list[str]:
        return [f"{letter}{index}" for index in range(self.random.randint(1, 1 + min(self.size, 3)))]

    def _may(self, chance: float) -> bool:
        return self.random.random() < chance

    # --- messages ---

    def make_messages(self) -> None:
        """Programs that take messages of clients and of other programs, and programs that messages start."""
        for key in self._names("m"):
            self._make_taker(key)
        sender = self._add_client()
        for target in self._names("b") if self._may(0.6) else []:
            for number in range(self.random.randint(1, 2 + self.size // 2)):
                step = plans.SleepStep(label=f"{target}.{number}", millis=self.random.choice([0, 50, 2_000]))
                plan = Plan(label=f"{target}/{number}", steps=(step,))
                sender.append(plans.StartByMessageCall(target=target, plan=plan, pause_millis=self._pause()))

    def _make_taker(self, key: str) -> None:
        sent = self.random.randint(1, 2 + self.size)
        sender = self._add_client(
            *(
                reach_plans.SendMessageCall(
                    target=key,
                    token=SignalToken(f"{key}/client", number),
                    pause_millis=self._pause(),
                    is_repeated=self._may(0.2),
                    is_doubled=self._may(0.2),
                )
                for number in range(sent)
            )
        )
        way = self.random.choice(["wait", "timed", "race"])
        comparison = Comparison.RESULT if way == "race" else Comparison.EXACT
        if self._may(0.4):
            first = self.random.randint(0, sent)
            again = reach_plans.TakeMessages(label=f"{key}.2", key=key, count=sent - first, way="wait")
            steps: list[AnyStep] = [
                reach_plans.TakeMessages(label=f"{key}.1", key=key, count=first, way="wait"),
                plans.ContinueAsNew(label=f"{key}.3", steps=(again,)),
            ]
            comparison = Comparison.EXACT
        else:
            others = self.random.randint(0, 1 + self.size // 2)
            if others:
                own = reach_plans.SendMessages(label=f"{key}/sender.1", key=key, count=others)
                self._add_client(self._start(f"{key}/sender", own))
            steps = [reach_plans.TakeMessages(label=f"{key}.1", key=key, count=sent + others, way=way)]
        start = self._start(key, *steps, comparison=comparison)
        if self._may(0.3):
            child = plans.RunChild(label=f"{key}/parent.1", plan=start.plan)
            start = self._start(f"{key}/parent", child)
        sender.insert(self.random.randint(0, len(sender)), start)

    # --- broadcast signals ---

    def make_broadcasts(self) -> None:
        """Subscribers in several programs: a client throws to all of them, then a program that catches its own."""
        names = self._names("u")
        client = self._add_client()
        for name in names:
            rounds = [reach_plans.CatchBroadcast(label=f"{name}.{number}", name=f"all/{number}") for number in range(2)]
            client.append(self._start(name, *rounds))
        markers = tuple((name, f"{name}.0") for name in names)
        client.append(reach_plans.AwaitMarkersCall(target="", markers=markers))
        client.append(
            reach_plans.BroadcastCall(
                target="all/0",
                token=SignalToken("all/client"),
                receivers=len(names),
                pause_millis=self._pause(),
                is_doubled=self._may(0.3),
            )
        )
        step = reach_plans.ThrowBroadcast(label="thrower.1", name="all/1", gate="gate", is_caught=self._may(0.7))
        client.append(self._start("thrower", step))
        markers = tuple((name, f"{name}.1") for name in names)
        client.append(reach_plans.AwaitMarkersCall(target="", markers=markers))
        client.append(plans.SignalCall(target="thrower", name="gate", token=SignalToken("thrower/gate")))

    # --- typed events ---

    def make_events(self) -> None:
        """Events that one consumer gets, kept before the wait or not, to all or to one; events that every program gets."""
        for name in self._names("e"):
            self._make_consumer(name)
        if self._may(0.7):
            count = self.random.randint(1, 2)
            calls: list[AnyCall] = [
                reach_plans.SendEventCall(
                    target="topic",
                    token=SignalToken("topic/client", number),
                    is_news=True,
                    pause_millis=self._pause(),
                    is_doubled=self._may(0.3),
                )
                for number in range(count)
            ]
            for name in self._names("n"):
                start = self._start(name, reach_plans.ReadNews(label=f"{name}.1", topic="topic", count=count))
                calls.insert(self.random.randint(0, len(calls)), start)
            self._add_client(*calls)

    def _make_consumer(self, name: str) -> None:
        count, is_addressed = self.random.randint(1, 2 + self.size // 2), self._may(0.4)
        sends: list[AnyCall] = [
            reach_plans.SendEventCall(
                target=name,
                token=SignalToken(f"{name}/client", number),
                is_addressed=is_addressed,
                pause_millis=self._pause(),
                is_doubled=self._may(0.2),
            )
            for number in range(count)
        ]
        is_helped = self._may(0.4)
        if is_helped:
            self._add_client(self._start(f"{name}/sender", reach_plans.SendOrder(label=f"{name}/sender.1", order=name)))
        start = self._start(name, reach_plans.TakeOrders(label=f"{name}.1", order=name, count=count + is_helped))
        sends.insert(0 if is_addressed else self.random.randint(0, count), start)
        self._add_client(*sends)

    # --- updates ---

    def make_updates(self) -> None:
        """Programs that handle updates of one or two clients."""
        for name in self._names("v"):
            shares = [self.random.randint(1, 2 + self.size // 2) for _ in range(self.random.randint(1, 2))]
            millis = self.random.choice([0, 0, 5, 500])
            clients = [
                self._add_client(*(self._update(name, SignalToken(f"{name}/{index}", number)) for number in range(share)))
                for index, share in enumerate(shares)
            ]
            total = sum(shares)
            steps: list[AnyStep] = [reach_plans.TakeUpdates(label=f"{name}.1", name="add", count=total, millis=millis)]
            if len(shares) == 1 and total > 1 and self._may(0.5):
                rest = reach_plans.TakeUpdates(label=f"{name}.2", name="add", count=total - 1, millis=millis)
                steps = [
                    reach_plans.TakeUpdates(label=f"{name}.1", name="add", count=1, millis=millis),
                    plans.ContinueAsNew(label=f"{name}.3", steps=(rest,)),
                ]
            clients[0].insert(0, self._start(name, *steps, comparison=Comparison.UNORDERED))

    def _update(self, target: str, token: SignalToken) -> AnyCall:
        return reach_plans.UpdateCall(
            target=target,
            name="add",
            token=token,
            pause_millis=self._pause(),
            is_repeated=self._may(0.2),
            is_doubled=self._may(0.2),
        )

    # --- people ---

    def make_tasks(self) -> None:
        """Programs with tasks that several clients want to complete, and one that is ended while its task is open."""
        people = [self._add_client() for _ in range(2)]
        for name in self._names("h"):
            asks = [reach_plans.AskPerson(label=f"{name}.{number}") for number in range(self.random.randint(1, 2))]
            people[0].append(self._start(name, *asks))
            for person in people:
                person.extend(
                    reach_plans.CompleteTaskCall(target=name, task=ask.label, pause_millis=self._pause()) for ask in asks
                )
        if self._may(0.6):
            hold = reach_plans.AskPerson(label="held.1", has_marker=True)
            ends = plans.CancelCall if self._may(0.5) else plans.TerminateCall
            self._add_client(self._start("held", hold), ends(target="held", marker=hold.label))

    # --- schedules ---

    def make_schedules(self) -> None:
        """Schedules that start programs a certain number of times."""
        for name in self._names("s"):
            step = plans.SleepStep(label=f"{name}.1", millis=self.random.choice([0, 100, 3_000]))
            self._add_client(
                plans.ScheduleCall(
                    target=name,
                    plan=Plan(label=name, steps=(step,)),
                    count=self.random.randint(1, 3),
                    every_seconds=self.random.choice([1, 2, 5]),
                    pause_millis=self._pause(),
                )
            )

    # --- pauses ---

    def make_pauses(self) -> None:
        """A client that pauses and resumes whatever there is; one program at least goes on for a while."""
        naps = [plans.SleepStep(label=f"q.{number}", millis=self.random.choice([100, 200, 900])) for number in range(8)]
        first = reach_plans.PauseCall(target="q", kind=PauseKind.EXECUTION, millis=2_000, pause_millis=20)
        targets = sorted({call.target for client in self.draft.clients for call in client if type(call) is plans.StartCall})
        kinds = [PauseKind.EXECUTION, PauseKind.EXECUTION, PauseKind.WORKFLOW, PauseKind.QUEUE]
        self._add_client(
            self._start("q", *naps),
            first,
            *(
                reach_plans.PauseCall(
                    target=self.random.choice(targets),
                    kind=self.random.choice(kinds),
                    millis=self.random.choice([0, 10, 500, 4_000, 12_000]),
                    pause_millis=self._pause(),
                )
                for _ in range(self.random.randint(1, 2 + self.size))
            ),
        )


FAMILIES: Final[Mapping[str, Callable[[ReachGenerator], None]]] = {
    "broadcasts": ReachGenerator.make_broadcasts,
    "events": ReachGenerator.make_events,
    "messages": ReachGenerator.make_messages,
    "pauses": ReachGenerator.make_pauses,
    "schedules": ReachGenerator.make_schedules,
    "tasks": ReachGenerator.make_tasks,
    "updates": ReachGenerator.make_updates,
}
