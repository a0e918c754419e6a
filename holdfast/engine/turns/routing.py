"""Who gets what in a batch: a pure function from claims and requests to a plan.

Theory of operation
-------------------
A batch holds some executions (locked rows) and some workflow ids (locked names); `claims` says which, and what was read
after the locks. Three kinds of things have arrived: inbox rows, due timers, and this node's own requests. `route` gives each
its place in a `Plan`, in that order, so that within an execution the inbox comes before timers and both before requests:
what was accepted earlier is handled earlier.

Where an arrival can go:

- *Its execution is held, or is started by this batch*: it joins the execution's turn.
- *Its workflow id is held and nobody is open under it*: a start makes a new execution; anything else is refused.
- *Another node holds its execution or its workflow id*: an inbox row stays where it is, for that node to find. A request
  cannot wait there, so it is forwarded to the inbox of the execution, or, if that cannot be named yet, put off to the next
  batch.
- *Its execution is closed, or there is none*: a row is consumed; its sender is told, its next run gets it, or it becomes a
  dead letter. A message or an event that one receiver gets goes back to the outbox, to be matched with somebody else; so
  does a message whose start finds its workflow id open. A request is refused.

Nothing is looked up in the middle. Where a fact is missing (is this workflow id free? who had it last? was this key used?)
the arrival is left out, the fact goes into `plan.lookups`, and the rest is routed as if the arrival were not there. The
batch reads the facts and routes everything anew: the function is pure, so what the incomplete pass decided is simply
forgotten. Each pass knows more than the one before, and an arrival needs at most a handful of facts, so this ends soon; the
usual batch needs none.

Why a start's row is left in the inbox in some branches although nothing is wrong: what it would join is created by this
very batch, whose insert may still lose against another node. Only once that is committed is the row of no further use.

What a newer Holdfast wrote. A row that cannot be read here, but is no damage, stays where it is, and so does everything for
the same execution or workflow id, or it would overtake it: rows and due timers stay, requests become rows behind them, and
the plan says which executions and ids this node leaves alone (`newer`). A request that cannot become a row, since nobody is
open under its workflow id, is refused. Nodes that can read the row go on with all of it, in order.

Executions that take no turns here, since they are blocked, on another node's route or without their code, are *withheld*:
their inbox grows without being read. Requests for them become rows behind what waits there, and inbox rows that were found
for them are left with it. An order to terminate is the exception, wherever it comes from: it gives up all that waits, so the
whole inbox is looked up, and the execution is then one like others; `Admission` lets it take that turn.

Keys make repeated requests harmless. The first one of a batch counts, whether it came by a call or by the inbox; those
after it get its answer. What was answered in earlier batches is remembered by the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.core import envelopes
from holdfast.core.effects import Limits
from holdfast.core.envelopes import ANSWERED, Cancel, InternalContinue, Signal, Start, Terminate, Triggered
from holdfast.core.failures import describe_exception
from holdfast.core.options import OnClosed, OnOpen
from holdfast.core.request_keys import RequestKey
from holdfast.core.safe_texts import count_noun
from holdfast.core.turn import NO_LIMITS
from holdfast.engine.requests import Answer, AnyRequest, Handled, Opened, Request, WorkflowIdLookup
from holdfast.engine.rows import find_following
from holdfast.engine.turns.arrivals import Arrival, make_due_envelope
from holdfast.engine.turns.claims import Claims, WorkflowKey, key_id_of
from holdfast.engine.turns.facts import FactMissing, Facts
from holdfast.engine.turns.handoff import keep_requests
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.engine.turns.plan import NOTHING_NEWER, AnswerLike, AnswerRequest, Forward, LeaveAlone, Plan, TakeTurn
from holdfast.engine.turns.request_keys import answer_remembered, answer_repeated, is_dead_letter, make_request_row
from holdfast.engine.turns.unrouted import DeadLetterRules, UnroutedWrites
from holdfast.engine.turns.withholding import WithheldInboxes
from holdfast.errors import (
    ExecutionClosed,
    HoldfastError,
    NewerFormat,
    WorkflowAlreadyClosed,
    WorkflowAlreadyOpen,
)
from holdfast.store.rows import ExecutionRow, InboxRow, RequestKeyId

_MAY_START_AGAIN: Final = frozenset({"failed", "cancelled", "terminated"})


def route(
    claims: Claims,
    requests: Sequence[AnyRequest],
    rules: DeadLetterRules,
    limits: Limits = NO_LIMITS,
    *,
    exclusive: bool,
) -> Plan:
    """What becomes of everything that has arrived.

    `exclusive`: no other node works on the store, so that keys need not be held against others.
    """
    return _Routing(claims, rules, limits, exclusive=exclusive).route(requests)


class _Routing:
    """One pass over everything that has arrived for a batch: collects what becomes the plan."""

    def __init__(self, claims: Claims, rules: DeadLetterRules, limits: Limits, *, exclusive: bool) -> None:
        self._claims = claims
        self._limits = limits
        self._exclusive = exclusive
        self._facts = Facts(claims, exclusive=exclusive)
        self._open = self._facts.open_ids
        self._starts: dict[str, Start] = {}
        self._arrivals: dict[str, list[Arrival]] = {}
        self._orgs: dict[str, str] = {}
        self._first: dict[RequestKeyId, Request | str] = {}
        """What came first under a key in this batch: a request, or the execution for which the inbox holds it."""
        self._max_attempts = rules.max_attempts
        self._unrouted = UnroutedWrites(rules)
        self._answers: list[AnswerRequest] = []
        self._answers_like: list[AnswerLike] = []
        self._forwards: list[Forward] = []
        self._retries: list[AnyRequest] = []
        self._runs_before: dict[str, int] = {}
        self._judged: set[str] = set()
        self._newer: dict[str, str] = {}
        """Executions for which something waits that only a newer Holdfast can read, and why."""
        self._newer_ids: dict[WorkflowKey, str] = {}
        """Workflow ids for which something waits that only a newer Holdfast can read, and why."""

    def route(self, requests: Sequence[AnyRequest]) -> Plan:
        claims = self._claims
        for row, reason in claims.undecodable:
            self._unrouted.dead_letter(row, reason)
        for row, reason in claims.newer:
            self._note_newer(row, reason)
        held, starts, arrivals, orgs = claims.held, self._starts, self._arrivals, self._orgs
        for arrival in claims.inbox:
            came = arrival.row
            if came is not None and came.execution_id in held and came.attempts < self._max_attempts and _is_plain(arrival):
                same = arrivals.get(came.execution_id)
                if same is not None:  # one more of many, for an execution that takes them
                    same.append(arrival)
                    continue
            if claims.newer and self._stays_behind_newer(arrival):
                continue
            try:
                self._route_inbox(arrival)
            except FactMissing:
                continue
        for timer in claims.due:
            if timer.execution_id in self._newer:
                continue
            self._add(timer.org, timer.execution_id, Arrival(make_due_envelope(timer), since=timer.due))
        for request in requests:
            if (
                type(request) is Request
                and (execution_id := request.execution_id) in held
                and request.key is None
                and request.judged is None
            ):
                # The usual case, by far: a result of this node's own, which has neither a key nor a condition.
                if execution_id in arrivals:
                    arrivals[execution_id].append(Arrival(request.envelope, request))
                else:
                    arrivals[execution_id] = [Arrival(request.envelope, request)]
                    orgs[execution_id] = request.org
                continue
            try:
                self._route_request(request)
            except FactMissing:
                continue
        newer = self._leave_alone() if claims.newer else NOTHING_NEWER
        kept = 0
        if claims.withheld:
            withheld = WithheldInboxes(claims, self._facts.lookups, self._unrouted, exclusive=self._exclusive)
            self._answers += withheld.leave(arrivals, starts, self._limits.max_signals)
            kept = withheld.kept
        turns = {
            execution_id: TakeTurn(orgs[execution_id], execution_id, starts.get(execution_id), own)
            for execution_id, own in arrivals.items()
        }
        return Plan(
            self._facts.lookups,
            turns,
            self._answers,
            self._answers_like,
            self._forwards,
            self._retries,
            self._unrouted.write,
            newer,
            [execution_id for execution_id in claims.examined if execution_id in claims.withheld],
            kept,
            self._runs_before,
            self._judged,
        )

    def _add(self, org: str, execution_id: str, arrival: Arrival) -> None:
        arrivals = self._arrivals.get(execution_id)
        if arrivals is None:
            self._arrivals[execution_id] = [arrival]
            self._orgs[execution_id] = org
        else:
            arrivals.append(arrival)

    def _takes_turn(self, execution_id: str) -> bool:
        """Whether an execution can take what arrives for it in this batch."""
        return execution_id in self._arrivals or execution_id in self._claims.held

    # --- what only a newer Holdfast can read ---

    def _note_newer(self, row: InboxRow, reason: str) -> None:
        if row.execution_id:
            self._newer[row.execution_id] = reason
            return
        key = (row.org, row.workflow_id)
        self._newer_ids[key] = reason
        receiver = self._open.get(key)
        if receiver is not None:
            self._newer[receiver] = reason

    def _stays_behind_newer(self, arrival: Arrival) -> bool:
        """Whether an inbox row stays where it is because of another, for the same receiver, that cannot be read here."""
        row, envelope = arrival.row, arrival.envelope
        assert row is not None  # noqa: S101 - asked only about inbox rows
        if row.execution_id:
            return row.execution_id in self._newer
        key = (row.org, row.workflow_id)
        if key in self._newer_ids:
            return True
        receiver = envelope.execution_id if type(envelope) is Start else ""
        if receiver not in self._newer:
            receiver = self._open.get(key) or ""
        if receiver not in self._newer:
            return False
        self._newer_ids[key] = self._newer[receiver]  # else it would be found, and left, again and again
        return True

    def _is_behind_newer(self, key: WorkflowKey, existing: str | None, on_open: OnOpen) -> bool:
        """Whether no execution can be started under a workflow id here, because of what waits under it."""
        if existing is None:
            return key in self._newer_ids
        return existing in self._newer and on_open is OnOpen.TERMINATE_EXISTING

    def _leave_alone(self) -> LeaveAlone:
        """Turn requests for executions that take no turn here into rows behind what waits for them."""
        for execution_id in self._newer:
            if execution_id not in self._arrivals:
                continue
            try:
                row = self._facts.find_row(execution_id)
            except FactMissing:
                continue
            turn = PendingTurn(self._orgs[execution_id], execution_id, None, self._arrivals.pop(execution_id))
            self._answers += keep_requests(turn, "" if row is None else row.route, self._unrouted)
        return LeaveAlone(self._newer, self._newer_ids)

    # --- the inbox ---

    def _route_inbox(self, arrival: Arrival) -> None:
        row, envelope = arrival.row, arrival.envelope
        assert row is not None  # noqa: S101 - asked only about inbox rows
        if row.attempts >= self._max_attempts:
            if isinstance(envelope, ANSWERED) and self._is_used(row.org, envelope.request, row.execution_id):
                self._unrouted.consume(arrival)  # its caller has an answer
            else:
                self._unrouted.dead_letter(row, f"handling it failed {count_noun(row.attempts, 'time')}")
        elif type(envelope) is InternalContinue or (type(envelope) is Start and row.execution_id):
            self._route_first(row, arrival)
        elif type(envelope) is Start:
            self._route_start(row.org, envelope, arrival)
        else:
            self._route_row(row, arrival)

    def _route_row(self, row: InboxRow, arrival: Arrival) -> None:
        key = (row.org, row.workflow_id)
        execution_id = row.execution_id
        if not execution_id:
            if not self._facts.holds_id(key):
                return  # being started elsewhere: it stays where it is
            execution_id = self._open[key] or ""
        if self._takes_turn(execution_id):
            self._add_unless_repeated(row.org, execution_id, arrival)
            return
        if execution_id and not row.execution_id:
            return  # its receiver is held elsewhere: it stays where it is
        found = self._facts.find_row(execution_id) if execution_id else None
        if found is None and row.execution_id and row.workflow_id:
            if not self._facts.holds_id(key):
                return  # its receiver is being started elsewhere: it stays where it is
            if execution_id not in self._arrivals and row.workflow_id == execution_id and self._open[key] is not None:
                execution_id = self._open[key] or ""  # whoever sent it could not tell which kind of id it is
            if self._takes_turn(execution_id):
                self._add(row.org, execution_id, arrival)
                return
            found = self._facts.find_row(execution_id)
        if found is not None and found.closed_at is None:
            return  # its receiver was started meanwhile, elsewhere: it stays where it is
        self._refuse_row(row, arrival, found)

    def _add_unless_repeated(self, org: str, execution_id: str, arrival: Arrival) -> None:
        envelope = arrival.envelope
        key = envelope.request if isinstance(envelope, (*ANSWERED, Signal, Cancel, Terminate)) else None
        if self._is_used(org, key, execution_id):
            self._unrouted.consume(arrival)
        else:
            self._add(org, execution_id, arrival)

    def _refuse_row(self, row: InboxRow, arrival: Arrival, closed: ExecutionRow | None) -> None:
        """Nobody takes it any more: its next run does, if its receiver continued; else whoever sent a signal hears of it."""
        envelope, unrouted = arrival.envelope, self._unrouted
        if type(envelope) is Triggered:  # also if its receiver continued: the next run waits by subscriptions of its own
            unrouted.give_back(row.org, envelope.publication, row.execution_id)
            unrouted.consume(arrival)
            return
        following = self._facts.find_latest_run(row) if closed is None else find_following(closed)
        if following is not None and isinstance(envelope, envelopes.CARRIED):
            if self._takes_turn(following):
                self._add_unless_repeated(row.org, following, arrival)
            else:
                unrouted.readdress(row, following, envelope, "")
        elif isinstance(envelope, ANSWERED):
            if not self._is_used(row.org, envelope.request, row.execution_id):
                error = self._facts.find_refusal(row.org, row.execution_id, row.workflow_id, "update")
                unrouted.reply(row.org, envelope.request, row.execution_id, error)
            unrouted.consume(arrival)
        elif following is not None:
            unrouted.consume(arrival)
        elif type(envelope) is Signal:
            error = self._facts.find_refusal(row.org, row.execution_id, row.workflow_id, "signal")
            if envelope.sender is not None:
                answer = envelopes.SignalAnswered(number=envelope.sender.number, failure=describe_exception(error))
                unrouted.send(row.org, envelope.sender.execution_id, answer)
                unrouted.consume(arrival)
            else:
                unrouted.dead_letter(row, error.message)
        elif isinstance(envelope, Cancel | Terminate):
            by_name = None if row.execution_id else self._facts.find_refusal(row.org, "", row.workflow_id, "cancel")
            if by_name is not None and not isinstance(by_name, ExecutionClosed):
                unrouted.dead_letter(row, by_name.message)
                return
            if (key := envelope.request) is not None and not self._is_used(row.org, key, row.execution_id):
                # Who repeats it is told what its sender was told when the inbox took it.
                unrouted.remember(make_request_row(row.org, key, row.execution_id, Handled()))
            unrouted.consume(arrival)
        else:
            unrouted.consume(arrival)

    def _route_first(self, row: InboxRow, arrival: Arrival) -> None:
        """The first turn of an execution that is registered: another node left it to this one."""
        found = self._facts.find_row(row.execution_id)
        if found is None or found.closed_at is not None or found.sequence > 0:
            self._unrouted.consume(arrival)  # it was handled before
        elif row.execution_id in self._claims.held:
            self._add(row.org, row.execution_id, arrival)
            arrivals = self._arrivals[row.execution_id]
            arrivals.insert(0, arrivals.pop())  # signals may have come before it
            if type(arrival.envelope) is InternalContinue:
                arrivals[1:1] = [Arrival(one, since=arrival.at) for one in arrival.envelope.signals]
                self._runs_before[row.execution_id] = arrival.envelope.runs

    # --- starts ---

    def _route_start(self, org: str, start: Start, arrival: Arrival) -> None:
        key, request = (org, start.workflow_id), arrival.request
        if start.workflow_id != start.execution_id and not self._facts.holds_id(key):
            if request is not None:
                self._pass_on(request)
            return
        existing = self._open.get(key)
        if self._claims.newer and request is not None and self._is_behind_newer(key, existing, start.on_open):
            self._answer(request, _behind_newer(start.workflow_id, "start"))
            return
        if arrival.row is not None:
            if existing == start.execution_id:
                self._unrouted.consume(arrival)  # it was handled before
                return
            if start.request is not None and self._is_repeated_row(org, start, start.request, arrival):
                return
        if existing is not None:
            if start.on_open is OnOpen.FAIL:
                self._refuse_start(org, start, arrival, _already_open(start.workflow_id, existing))
                return
            if start.on_open is OnOpen.USE_EXISTING:
                self._use_existing(org, start, arrival, existing)
                return
            if not self._takes_turn(existing):
                if request is not None:
                    self._retries.append(request)
                return
            self._add(org, existing, Arrival(Terminate(reason="another was started in its place"), since=arrival.at))
        elif start.on_closed is not OnClosed.ALLOW:
            latest = self._facts.find_latest(key)
            if latest is not None and not (
                start.on_closed is OnClosed.ALLOW_IF_FAILED and latest.status in _MAY_START_AGAIN
            ):
                self._refuse_start(org, start, arrival, _already_closed(latest, start.on_closed))
                return
        self._begin(org, start, arrival)

    def _begin(self, org: str, start: Start, arrival: Arrival) -> None:
        """A new execution, with the signal that goes along."""
        request = arrival.request
        signal = start.signal if request is None else request.signal
        if signal is not None and request is None:
            if self._is_used(org, signal.request, start.execution_id):
                self._unrouted.consume(arrival)
                return
            start = msgspec.structs.replace(start, signal=None)
        execution_id = start.execution_id
        self._starts[execution_id] = start
        self._orgs[execution_id] = org
        if signal is None:
            self._arrivals[execution_id] = [arrival]
        else:  # the row is the signal's, which keeps its place in the order of arrival; a start always comes first
            begin = Arrival(start, request, since=arrival.at)
            self._arrivals[execution_id] = [begin, Arrival(signal, request, arrival.row)]
        self._open[org, start.workflow_id] = execution_id

    def _use_existing(self, org: str, start: Start, arrival: Arrival, existing: str) -> None:
        """An open execution takes the signal of a start, if it has one. A row stays where it is until that is certain."""
        if arrival.request is not None:
            self._answer_existing(org, arrival.request, existing)
        elif start.signal is None:
            if existing in self._starts:
                return  # it is being started in this very batch, which may yet be lost
            self._unrouted.consume(arrival)
            if start.publication is not None:
                self._unrouted.give_back(org, start.publication)
            if start.request is not None:
                self._unrouted.remember(make_request_row(org, start.request, existing, Opened(existing, created=False)))
        elif self._takes_turn(existing):
            if self._is_used(org, start.signal.request, existing):
                self._unrouted.consume(arrival)
            else:
                self._add(org, existing, Arrival(start.signal, None, arrival.row))

    def _answer_existing(self, org: str, request: Request, existing: str) -> None:
        if request.signal is None:
            if existing in self._starts:
                self._retries.append(request)  # it is being started in this very batch, which may yet be lost
                return
            opened = Opened(existing, created=False)
            self._answer(request, opened)
            if request.key is not None:
                self._unrouted.remember(make_request_row(org, request.key, existing, opened))
        elif self._takes_turn(existing):
            self._add(org, existing, Arrival(request.signal, request))
        else:
            self._forwards.append(Forward(request, existing))

    def _refuse_start(self, org: str, start: Start, arrival: Arrival, error: HoldfastError) -> None:
        if arrival.request is not None:
            self._answer(arrival.request, error)
            return
        self._unrouted.refuse(arrival, error)
        self._unrouted.refuse_child(start, org, describe_exception(error))

    # --- requests ---

    def _route_request(self, request: AnyRequest) -> None:
        if isinstance(request, WorkflowIdLookup):
            self._answer_lookup(request)
            return
        if request.key is not None and self._is_repeated(request, request.key):
            return
        if type(request.envelope) is Start:
            self._route_start(request.org, request.envelope, Arrival(request.envelope, request))
            return
        key, execution_id = (request.org, request.workflow_id), request.execution_id
        if not execution_id:
            if not self._facts.holds_id(key):
                self._pass_on(request)
                return
            execution_id = self._open[key] or ""
            if not execution_id and key in self._newer_ids:
                self._answer(request, _behind_newer(request.workflow_id, request.verb))
                return
        if self._takes_turn(execution_id):
            self._add(request.org, execution_id, Arrival(request.envelope, request))
            if request.judged is not None:
                self._judged.add(execution_id)
        elif request.judged is not None:
            self._answer(request, Handled(is_done=False))  # somebody is touching it, or it is closed
        elif execution_id in self._claims.busy or (execution_id and not request.execution_id):
            self._forwards.append(Forward(request, execution_id))
        else:
            error = self._facts.find_refusal(request.org, request.execution_id, request.workflow_id, request.verb)
            ended = isinstance(request.envelope, Cancel | Terminate) and isinstance(error, ExecutionClosed)
            if ended and request.key is not None:  # else, repeated, it would reach whoever is open under the id by then
                self._unrouted.remember(make_request_row(request.org, request.key, "", Handled(is_done=False)))
            self._answer(request, Handled(is_done=False) if ended else error)

    def _answer_lookup(self, request: WorkflowIdLookup) -> None:
        """The inbox comes before requests: what waited there under the workflow id has been routed."""
        key = (request.org, request.workflow_id)
        if not self._facts.holds_id(key) or self._open[key] in self._starts:
            self._retries.append(request)  # it is being started, here or elsewhere
        elif self._open[key] is None and key in self._newer_ids:
            self._answer(request, _behind_newer(request.workflow_id, "find"))
        else:
            self._answer(request, Handled())

    def _pass_on(self, request: Request) -> None:
        """Another node holds the workflow id: whoever is open under it is reached by its inbox; else it is being started."""
        row = self._facts.find_latest((request.org, request.workflow_id))
        start = request.envelope if isinstance(request.envelope, Start) else None
        if row is None or row.closed_at is not None or (start is not None and start.on_open is not OnOpen.USE_EXISTING):
            self._retries.append(request)
        elif start is None or request.signal is not None:
            self._forwards.append(Forward(request, row.execution_id))
        else:
            self._answer_existing(request.org, request, row.execution_id)

    def _answer(self, request: AnyRequest, answer: Answer) -> None:
        self._answers.append(AnswerRequest(request, answer))

    # --- keys ---

    def _is_repeated(self, request: Request, key: RequestKey) -> bool:
        """Whether the request was answered before, or is repeated within this batch; or another node is at it right now."""
        key_id = key_id_of(request.org, key)
        first = self._first.setdefault(key_id, request)
        if isinstance(first, str):
            self._answer(request, answer_repeated(request, first, None))
            return True
        if first is not request:
            self._answers_like.append(AnswerLike(request, first))
            return True
        if request.is_start and not self._facts.holds_key(key_id):
            self._retries.append(request)
            return True
        known = self._facts.find_remembered(key_id)
        if known is None:
            return False
        self._answer(request, answer_remembered(request, known))
        return True

    def _is_repeated_row(self, org: str, start: Start, key: RequestKey, arrival: Arrival) -> bool:
        """Whether a start in the inbox needs nothing more now: its key was used before, or another node is at it."""
        if not self._facts.holds_key(key_id_of(org, key)):
            return True
        if not self._is_used(org, key, start.execution_id):
            return False
        self._unrouted.consume(arrival)
        return True

    def _is_used(self, org: str, key: RequestKey | None, execution_id: str) -> bool:
        """Whether what the inbox holds for an execution was taken before, or is there twice."""
        if key is None:
            return False
        key_id = key_id_of(org, key)
        if key_id in self._first:
            return True
        known = self._facts.find_remembered(key_id)
        if known is not None and is_dead_letter(known):
            known = None  # somebody requeued it
        # Who comes next with the key gets the answer of the first of all: if that was another, this one leads to nothing.
        self._first[key_id] = execution_id if known is None else known.execution_id
        return known is not None


def _is_plain(arrival: Arrival) -> bool:
    """Whether an arrival is a signal without a key, which need not be looked up."""
    return type(arrival.envelope) is Signal and arrival.envelope.request is None


def _behind_newer(workflow_id: str, verb: str) -> NewerFormat:
    return NewerFormat(
        f"Expected to {verb} workflow id '{workflow_id}', but what waits under it was written by a newer Holdfast. "
        "Upgrade this node, or ask one of the newer version."
    )


def _already_open(workflow_id: str, execution_id: str) -> WorkflowAlreadyOpen:
    return WorkflowAlreadyOpen(
        f"Expected to start workflow id '{workflow_id}', but execution {execution_id} has it and is open. "
        "Use another id, or on_open='use_existing' or 'terminate_existing'."
    )


def _already_closed(row: ExecutionRow, policy: OnClosed) -> WorkflowAlreadyClosed:
    return WorkflowAlreadyClosed(
        f"Expected to start workflow id '{row.workflow_id}' with on_closed='{policy}', but execution {row.execution_id} "
        f"had it and is {row.status}. Use another id, or on_closed='allow'."
    )
