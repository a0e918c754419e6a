"""The proof: claims about the story, each checked against the histories and the ledger. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.cli.demo.evidence import Evidence, StoredExecution
from holdfast.cli.demo.outside import Entry, Phase
from holdfast.cli.demo.workflows import FAILING_ATTEMPTS, SLOW_SUBJECTS
from holdfast.core import events, payloads
from holdfast.core.instants import Instant, from_datetime
from holdfast.core.lifecycle import Status


class Check(msgspec.Struct, frozen=True):
    """A claim, whether it holds, and what was found."""

    claim: str
    holds: bool
    found: str


class ActivityRuns(msgspec.Struct):
    """One activity: how often its function ran outside, and what the history says about it."""

    activity: str
    subject: str
    begun: int = 0
    failed: int = 0
    done: int = 0
    results: int = 0
    attempt: int = 0

    @property
    def was_cut_off(self) -> bool:
        """Whether a run of its function neither failed nor got done."""
        return self.begun > self.failed + self.done

    @property
    def expected_begun(self) -> int:
        """How often it should have begun: once, and again after each failure and after the kill."""
        return 1 + (FAILING_ATTEMPTS if self.activity == "charge" else 0) + (self.subject in SLOW_SUBJECTS)


def collect_runs(evidence: Evidence) -> list[ActivityRuns]:
    """Every activity of the story, in the order in which its function first ran."""
    runs: dict[str, ActivityRuns] = {}
    for entry in evidence.ledger:
        run = runs.setdefault(_name_activity(entry.key), ActivityRuns(entry.activity, entry.subject))
        _count(run, entry)
    for info, event in evidence.walk():
        if isinstance(event, events.ActivityCompleted):
            key = f"{info.execution_id}/{event.number}"
            run = runs.setdefault(key, ActivityRuns("unknown", key))
            run.results += 1
            run.attempt = event.attempt
    return list(runs.values())


def _name_activity(idempotency_key: str) -> str:
    """The execution and the number of the activity that a key is for, without the digest of what is asked."""
    return "/".join(idempotency_key.split("/")[:2])


def _count(run: ActivityRuns, entry: Entry) -> None:
    match entry.phase:
        case Phase.BEGUN:
            run.begun += 1
        case Phase.FAILED:
            run.failed += 1
        case Phase.DONE:
            run.done += 1


# --- the claims ---


def check_ends(evidence: Evidence) -> Check:
    ended = [told for told in evidence.executions if told.info.status is Status.COMPLETED]
    total = len(evidence.executions)
    return Check("every execution has completed", 0 < total == len(ended), f"{len(ended)} of {total}")


def check_sequences(evidence: Evidence) -> Check:
    broken = [told.info.workflow_id for told in evidence.executions if not _is_whole(told)]
    number = sum(len(told.events) for told in evidence.executions)
    found = f"gaps in {', '.join(broken)}" if broken else f"{number} events in {len(evidence.executions)} histories"
    return Check("no history has a gap", not broken, found)


def _is_whole(told: StoredExecution) -> bool:
    found = [recorded.sequence for recorded in told.history.events]
    return found == list(range(1, told.info.history_length + 1))


def check_signals_received(evidence: Evidence) -> Check:
    sent, received = _by_person(evidence), _read_signals(evidence)
    found = f"{len(evidence.sent)} sent, {sum(map(len, received.values()))} received"
    return Check("each message arrived once, in order", sent == received, found)


def check_signals_handled(evidence: Evidence) -> Check:
    sent = _by_person(evidence)
    answered = {person: _answers(evidence, person) for person in sent}
    total = sum(map(len, answered.values()))
    expected = {person: [f"You said: {text}" for text in texts] for person, texts in sent.items()}
    return Check("each message was answered once", answered == expected, f"{total} answered")


def _by_person(evidence: Evidence) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for say in evidence.sent:
        found[say.person].append(say.text)
    return dict(found)


def _read_signals(evidence: Evidence) -> dict[str, list[str]]:
    """What was received in each conversation."""
    found = {told.info.workflow_id.removeprefix("chat-"): read_messages(told) for told in evidence.executions}
    return {person: texts for person, texts in found.items() if texts}


def read_messages(told: StoredExecution) -> list[str]:
    """The messages that an execution received."""
    return [_decode(event.value)["text"] for event in told.events if isinstance(event, events.SignalReceived)]


def _answers(evidence: Evidence, person: str) -> list[str]:
    """The answers that a conversation's workflow returned."""
    told = evidence.find(f"chat-{person}")
    closing = told.events[-1] if told is not None and told.events else None
    return list(_decode(closing.result)) if isinstance(closing, events.WorkflowCompleted) else []


def check_results(evidence: Evidence) -> Check:
    scheduled = Counter(
        (info.execution_id, event.number) for info, event in evidence.walk() if isinstance(event, events.ActivityScheduled)
    )
    recorded = Counter(
        (info.execution_id, event.number) for info, event in evidence.walk() if isinstance(event, events.ActivityCompleted)
    )
    holds = scheduled == recorded and set(recorded.values()) == {1}
    found = f"{scheduled.total()} scheduled, {recorded.total()} results"
    return Check("each activity has one recorded result", holds, found)


def check_effects(evidence: Evidence) -> Check:
    runs = collect_runs(evidence)
    holds = bool(runs) and all(run.done == run.results == 1 for run in runs)
    return Check("the ledger says: each was done once", holds, f"{sum(run.done for run in runs)} done outside")


def check_attempts(evidence: Evidence) -> Check:
    runs = collect_runs(evidence)
    cut_off = [run.subject for run in runs if run.was_cut_off]
    holds = sorted(cut_off) == sorted(SLOW_SUBJECTS) and all(run.begun == run.attempt == run.expected_begun for run in runs)
    found = f"cut off: {', '.join(cut_off) or 'none'}"
    return Check("only failed or cut-off work ran again", holds, found)


def check_timers(evidence: Evidence) -> Check:
    started = fired = outlived = 0
    lateness = []
    for told in evidence.executions:
        armed: dict[int, tuple[datetime, Instant]] = {}
        for recorded in told.history.events:
            if isinstance(recorded.event, events.TimerStarted):
                started += 1
                armed[recorded.event.number] = recorded.taken_at, recorded.event.due
            elif isinstance(recorded.event, events.TimerFired):
                fired += 1
                begun, due = armed[recorded.event.number]
                outlived += begun < evidence.killed_at < recorded.taken_at
                lateness.append(from_datetime(recorded.taken_at) - due)
    holds = started == fired == outlived > 0 and min(lateness) >= 0
    late = f", {max(lateness) / 1000:.0f} ms late" if lateness else ""
    return Check("the timer outlived the kill, fired once", holds, f"{started} started, {fired} fired{late}")


def check_children(evidence: Evidence) -> Check:
    asked = sorted(event.execution_id for _, event in evidence.walk() if isinstance(event, events.ChildStarted))
    ended = sum(isinstance(event, events.ChildCompleted) for _, event in evidence.walk())
    made = sorted(told.info.execution_id for told in evidence.executions if told.info.parent_execution_id is not None)
    found = f"{len(asked)} asked for, {len(made)} made, {ended} results"
    return Check("each child ran once", bool(asked) and asked == made and len(asked) == ended, found)


def check_database(evidence: Evidence) -> Check:
    found = evidence.problems[0] if evidence.problems else "holdfast check: ok"
    return Check("the database is sound", not evidence.problems, found)


CHECKS: Final[Sequence[Callable[[Evidence], Check]]] = (
    check_ends,
    check_signals_received,
    check_signals_handled,
    check_results,
    check_effects,
    check_attempts,
    check_timers,
    check_children,
    check_sequences,
    check_database,
)


def check_all(evidence: Evidence) -> list[Check]:
    """Check every claim of the demo against the database and the ledger."""
    return [check(evidence) for check in CHECKS]


def _decode(payload: payloads.Payload) -> Any:
    return payloads.decode(payload, Any, "a value of the story")
