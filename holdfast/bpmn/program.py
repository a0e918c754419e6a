"""The program of one execution of a process: events in, records and commands out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.bpmn import records
from holdfast.bpmn.beginning import begin_process
from holdfast.bpmn.evolve import ANSWERS, apply_record, begin_advance, end_advance, take
from holdfast.bpmn.handlers.user_tasks import list_missing
from holdfast.bpmn.linked import NOTHING_LINKED, LinkedResources
from holdfast.bpmn.moving import receive_signal, run_to_rest, trigger
from holdfast.bpmn.queries import answer
from holdfast.bpmn.repairing.updates import carry_out, find_refusal
from holdfast.bpmn.running import Run, Setting
from holdfast.bpmn.scopes import end
from holdfast.bpmn.state import ROOT, SCHEMA, HeldEvent, State, decode_state, encode_state
from holdfast.bpmn.values import read_object, show_json
from holdfast.core import commands, events
from holdfast.core.effects import ACCEPTED, Checked
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.program import Step
from holdfast.errors import CorruptStore, TaskFormMismatch

if TYPE_CHECKING:
    from holdfast.bpmn.executable import CompiledProcess
    from holdfast.core.definition import Definition
    from holdfast.core.envelopes import Update
    from holdfast.core.events import Given, HistoryTurn
    from holdfast.core.execution import Execution
    from holdfast.core.instants import Instant
    from holdfast.core.payloads import Payload
    from holdfast.core.program import Waits
    from holdfast.core.program_limits import ProgramLimits

ROUTE_NAME: Final = "bpmn/1"
"""What stands for a process in its route: the generation of the records. Nodes that do not know it leave it alone."""
_NOTHING: Final = Step()
_IGNORED: Final = frozenset(
    {
        events.ExternalSignalCompleted,
        events.ExternalSignalFailed,
        events.TaskRescheduled,
        events.TaskReminded,
    }
)


class ProcessProgram:
    """The program of one execution of a process."""

    snapshot_schema: Final = SCHEMA

    def __init__(
        self,
        definition: Definition,
        process: CompiledProcess,
        execution: Execution,
        limits: ProgramLimits,
        linked: LinkedResources = NOTHING_LINKED,
    ) -> None:
        self.definition = definition
        self.code_version = definition.version
        self.state = State()
        self._setting = Setting(process, execution.org, execution.execution_id, limits, linked)

    @property
    def weight(self) -> int:
        """About how many bytes of memory it holds."""
        return self.state.weight

    # --- the two verbs ---

    def advance(self, event: Given, now: Instant) -> Step:
        """Take one event, move tokens until none can move, and say what happened and what is wanted."""
        setting = self._setting
        return setting.limits.run.call(setting.process.id, setting.execution_id, self._advance, (event, now))

    def _advance(self, given: tuple[Given, Instant]) -> Step:
        event, now = given
        try:
            return self._run(event, now)
        except Exception as error:
            if self._setting.limits.run.ends_process(error):
                raise
            return Step([commands.Block(error=describe_exception(error))])

    def _run(self, event: Given, now: Instant) -> Step:
        kind = type(event)
        found = take(self.state, event)
        if kind in _IGNORED or getattr(event, "held", False) or (self.state.is_begun and self.state.root is None):
            return _NOTHING
        if kind in ANSWERS and not (self.state.held or _may_close(self.state)):
            return _NOTHING
        run = Run(self._setting, self.state, now)
        held = self.state.held
        is_waiting = bool(held or self.state.kept)
        begin_advance(self.state)
        if self.state.cancel_requested:
            _cancel(run)
        elif not self.state.never_runs:
            if self.state.start is not None and self.state.root is None:
                begin_process(run)
            for one in held:
                _take_held(run, one)
            _give(run, event, found)
            run_to_rest(run)
        if not run.records and not is_waiting:
            return Step(run.commands) if run.commands else _NOTHING
        # Also without any record: it tells that what was held or kept has had its way.
        end_advance(self.state)
        return Step(run.commands, (events.ProcessAdvanced(records=records.encode_records(run.records)),))

    def apply(self, turns: Iterable[HistoryTurn]) -> Failure | None:
        """Take what has already happened. Returns the failure if its records cannot be read."""
        state = self.state
        try:
            for turn in turns:
                for event in turn.events:
                    if type(event) is events.ProcessAdvanced:
                        begin_advance(state)
                        for record in records.decode_records(event.records):
                            apply_record(state, record)
                        end_advance(state)
                    elif type(event) in events.GIVEN:
                        take(state, event)
        except (msgspec.MsgspecError, LookupError) as error:
            message = f"Expected the records of a process, but they cannot be read: {error}. Restore them from a backup."
            return describe_exception(CorruptStore(message))
        return None

    # --- what is asked of programs ---

    def untaken_signals(self) -> tuple[commands.Untaken, ...]:
        """Signals that no element has taken."""
        return tuple(
            commands.UntakenSignal(name, value, {}) for name, values in self.state.signals.items() for value in values
        )

    def check_update(self, update: Update) -> Checked:
        """Whether an update may be accepted: it is one that processes take, and it can be made."""
        refusal = find_refusal(self.state, update.name, update.value)
        return ACCEPTED if refusal is None else Checked(refusal)

    def check_form(self, number: int, form: Payload) -> Checked:
        """Whether what a person filled in is an object of variables that has what the form requires."""
        given = {} if bytes(form.data) == b"null" else read_object(form.data)
        if given is None:
            return Checked(
                TaskFormMismatch(
                    "Expected the form of a user task to be an object with variables, but it is "
                    f"{show_json(form.data)}. Pass a dict."
                )
            )
        found = self.state.waits.get(number)
        node = None if found is None else self._setting.process.nodes.get(found[1].catcher)
        missing = [] if node is None else list_missing(self._setting.linked, node, given)
        if missing:
            names = ", ".join(f"'{name}'" for name in missing)
            return Checked(TaskFormMismatch(f"Expected the form to have a value for {names}, but it has none. Fill it in."))
        return ACCEPTED

    def update_names(self) -> tuple[str, ...]:
        """None is shown as something that is awaited: the reserved ones are always there."""
        return ()

    def answer_query(self, name: str, args: Payload) -> Payload:
        """What is active, and variables. Raises a HoldfastError."""
        return answer(self._setting.process, self.state, name, args)

    def waiting_signals(self) -> tuple[str, ...]:
        """None: what is awaited are subscriptions."""
        return ()

    def find_waits(self) -> Waits | None:
        """None: everything that is awaited has its row."""
        return None

    def take_snapshot(self) -> bytes | None:
        """The state of the process at rest, as JSON."""
        return encode_state(self.state)

    def restore_snapshot(self, body: bytes, schema: int) -> bool:
        """Take the state of a snapshot, if its form is known."""
        if schema != SCHEMA:
            return False
        self.state = decode_state(body)
        return True

    def close(self) -> None:
        """Nothing is held that would have to be freed."""


# --- the beginning and the end ---


def _cancel(run: Run) -> None:
    root = run.state.root
    if root is not None:
        end(run, root)
    run.issue(commands.EndCancelled())
    run.is_over = True


def _may_close(state: State) -> bool:
    """Whether a process that is done has waited for answers to what it published, and has them all now."""
    root = state.root
    return root is not None and not root.children and not state.kept and not state.unanswered


# --- giving events ---


def _take_held(run: Run, one: HeldEvent) -> None:
    if run.is_over:
        return
    if one.update:
        carry_out(run, one.update, one.name, one.value)
    else:
        receive_signal(run, one.name, one.value)


def _give(run: Run, event: Any, found: tuple[int, records.Wait] | None) -> None:
    if run.is_over:
        return
    if type(event) is events.SignalReceived:
        receive_signal(run, event.name, event.value)
    elif type(event) is events.UpdateAccepted:
        carry_out(run, event.update, event.name, event.value)
    elif type(event) in ANSWERS:
        run.touched.append(ROOT)
    elif found is not None and found[0] in run.state.active:  # else what was held has ended it
        trigger(run, found[0], found[1], event)
