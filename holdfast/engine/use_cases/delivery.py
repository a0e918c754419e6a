"""From calls to envelopes: checks what was asked, turns it into a request for the next batch, and waits for its commit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from holdfast.code.bound_workflows import BoundWorkflow, check_call, check_options, list_options, unbind
from holdfast.core import payloads
from holdfast.core.envelopes import AnyEnvelope, Cancel, Signal, Start, Terminate
from holdfast.core.ids import DEFAULT_QUEUE, check_identifier, make_execution_id
from holdfast.core.instants import SECOND, Duration, Instant, to_micros
from holdfast.core.options import OnClosed, OnOpen, naming_options, separate_options
from holdfast.core.references import check_reference
from holdfast.core.request_keys import KEY_SCOPES, MADE_UP, RequestKey
from holdfast.core.safe_texts import LONGEST_SHOWN, is_plain_text, show
from holdfast.core.signals import missing_error
from holdfast.core.start_checks import CHAIN_OPTIONS, change_chain, check_chain, check_start_at, check_texts
from holdfast.engine.encoded_store import show_encoded
from holdfast.engine.requests import (
    Accepted,
    Answer,
    AnyRequest,
    Handled,
    Opened,
    Request,
    WorkflowIdLookup,
)
from holdfast.engine.turns.claims import key_id_of
from holdfast.engine.turns.request_keys import SIGNAL_WITH_START, answer_remembered
from holdfast.engine.use_cases.open_limits import OpenLimits
from holdfast.engine.use_cases.start_options import SIGNAL_WITH_START_OPTIONS, START_OPTIONS
from holdfast.engine.use_cases.unknown_names import UnknownNames
from holdfast.errors import (
    ExecutionClosed,
    ExecutionNotFound,
    InvalidArguments,
    InvalidConfiguration,
)
from holdfast.store.once import KeyedCall
from holdfast.store.rows import ExecutionRow, RequestRow

if TYPE_CHECKING:
    from holdfast.code.definitions import Workflow
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.engine.config import Config
    from holdfast.store.contract import Store

A = TypeVar("A", Opened, Accepted, Handled)
E = TypeVar("E", OnOpen, OnClosed)
AnyWorkflow: TypeAlias = "Workflow[..., Any] | BoundWorkflow[Any] | str"
LONGEST_REASON = 4_000
_EXECUTION_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class PreparedStart(msgspec.Struct, frozen=True, gc=False):
    """A start that was checked and encoded."""

    start: Start
    key: RequestKey | None
    """What makes a repetition of the request safe, if the caller gave one."""
    result_hint: Any
    """The type as which the caller gets the execution's result."""


class Delivery:
    """Delivers calls of the API as requests. Each method raises before anything is stored, or returns after the commit."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        config: Config,
        clock: Clock,
        submit: Callable[[AnyRequest], None],
        entropy: Callable[[int], int],
    ) -> None:
        self._store = store
        self._shown = show_encoded(store)
        self._catalog = catalog
        self._config = config
        self._clock = clock
        self._submit = submit
        self._entropy = entropy
        self.open_limits = OpenLimits(store, config, self.send, self._recall)
        self.unknown_names = UnknownNames(store, catalog, clock)

    @property
    def now(self) -> Instant:
        """The present, by the engine's clock."""
        return self._clock.now()

    @property
    def payload_limit(self) -> int:
        """How many bytes a value may have as JSON."""
        return self._config.payload_limit

    # --- starting ---

    async def start(self, org: str, prepared: PreparedStart, signal: Signal | None = None) -> Opened:
        """Open an execution, or find the one that is open, as one step; with a signal, which is delivered either way."""
        start = prepared.start
        request = Request(org, start, workflow_id=start.workflow_id, signal=signal, key=prepared.key)
        return _expect(Opened, await self.open_limits.send(request))

    def make_start(self, org: str, workflow: AnyWorkflow, args: Sequence[Any], keywords: Mapping[str, Any]) -> PreparedStart:
        """A start, checked and encoded: of the newest version, or of the one asked for, to which it is pinned then.

        `keywords` are options (`StartOptions`) and arguments of the workflow.
        """
        options, kwargs = separate_options(keywords, START_OPTIONS)
        check_identifier(org, "the org")
        workflow_id = options.get("workflow_id")
        with naming_options(START_OPTIONS):
            start, hint = self._make_run(org, workflow, args, kwargs, options)
        start = msgspec.structs.replace(
            start,
            workflow_id=start.execution_id if workflow_id is None else check_identifier(workflow_id, "the workflow id"),
            on_open=_choose(OnOpen, options.get("on_open", OnOpen.USE_EXISTING), "on_open"),
            on_closed=_choose(OnClosed, options.get("on_closed", OnClosed.ALLOW), "on_closed"),
        )
        key = self._key("start", options.get("idempotency_key"), options.get("idempotency_ttl"), "")
        request_id = options.get("request_id")
        if request_id is not None:
            if key is not None:
                raise InvalidArguments(
                    "Expected a start with a request id or with an idempotency key, but it has both. Pass the request id to "
                    "make a repeated call safe, the key to start one execution however many calls there are."
                )
            key = self._key("start_request", request_id, None, workflow_id or "")
        return PreparedStart(start, key, hint)

    def make_start_with_signal(
        self,
        org: str,
        workflow_id: str,
        workflow: AnyWorkflow,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        kind: str = SIGNAL_WITH_START,
    ) -> PreparedStart:
        """The start of a signal-with-start, or of an update-with-start, checked and encoded as `make_start` does it."""
        options, kwargs = separate_options(keywords, SIGNAL_WITH_START_OPTIONS)
        check_identifier(org, "the org")
        check_identifier(workflow_id, "the workflow id")
        with naming_options(SIGNAL_WITH_START_OPTIONS):
            start, hint = self._make_run(org, workflow, args, kwargs, options)
        key = self._key(kind, options.get("request_id"), options.get("idempotency_ttl"), workflow_id)
        return PreparedStart(msgspec.structs.replace(start, workflow_id=workflow_id), key, hint)

    def _make_run(
        self, org: str, workflow: AnyWorkflow, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[Start, Any]:
        """A start with its execution id for its workflow id, and the type of its result."""
        version, queue = options.get("version"), options.get("queue")
        call = unbind(workflow, args, kwargs)
        definition = self._catalog.find(call.workflow, version, org)
        given = list_options(call, workflow, options, org)
        if isinstance(call.workflow, str):  # by position also what can be named only: so they come from other processes
            left = [*definition.parameters][len(call.args) :]
            check_options(f"workflow '{call.workflow}'", left, given, can_bind=False)
        else:
            check_call(call, given)
        args, kwargs = call.args, call.kwargs
        if "workflow_input" in options:
            args = take_input(args, kwargs, options["workflow_input"])
        encoded = definition.encode_input(args, kwargs, self._config.payload_limit)
        now = self._clock.now()
        execution_id = make_execution_id(now, self._entropy(62))
        start = Start(
            execution_id=execution_id,
            workflow_id=execution_id,
            workflow=definition.name,
            input=encoded,
            queue=DEFAULT_QUEUE if queue is None else check_identifier(queue, "the queue"),
            code_version=definition.version,
            pinned=version is not None,
            route_name=definition.route_name,
            metadata=check_texts(options.get("metadata"), "metadata", self._config.payload_limit),
            headers=check_texts(options.get("headers"), "headers", self._config.payload_limit),
            reference=check_reference(options.get("business_reference")),
            start_at=check_start_at(options.get("delay"), now),
            chain=check_chain(options.get("execution_timeout"), options.get("run_timeout"), options.get("retry")),
        )
        return start, definition.result_hint

    def make_scheduled(
        self,
        org: str,
        workflow: AnyWorkflow,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> Start:
        """What a schedule starts again and again, checked and encoded as by `make_start`. It joins nobody's execution."""
        check_identifier(org, "the org")
        return msgspec.structs.replace(self._make_run(org, workflow, args, kwargs, options)[0], on_open=OnOpen.FAIL)

    def make_changed(self, org: str, start: Start, options: Mapping[str, Any]) -> Start:
        """A start with other options: those that are given."""
        limit, changes = self._config.payload_limit, dict[str, Any]()
        if options.get("queue") is not None:
            changes["queue"] = check_identifier(options["queue"], "the queue")
        for name in ("metadata", "headers"):
            if name in options:
                changes[name] = check_texts(options[name], name, limit)
        if "version" in options:
            found = self._catalog.find(start.workflow, options["version"], org)
            changes |= {"code_version": found.version, "pinned": options["version"] is not None}
            changes["route_name"] = found.route_name
        if "business_reference" in options:
            changes["reference"] = check_reference(options["business_reference"])
        if CHAIN_OPTIONS & options.keys():
            changes["chain"] = change_chain(start.chain, options)
        return msgspec.structs.replace(start, **changes)

    # --- reaching an execution ---

    def make_signal(self, name: str, value: Any, headers: Mapping[str, str] | None = None) -> Signal:
        """A signal with its name and headers checked and its value encoded. Raises InvalidIdentifier or EncodingError."""
        check_identifier(name, "the name of a signal")
        limit = self._config.payload_limit
        encoded = payloads.encode(value, f"the value of signal '{name}'", limit)
        return Signal(name=name, value=encoded, headers=check_texts(headers, "headers", limit))

    async def signal(
        self,
        org: str,
        target: str,
        name: str,
        value: Any,
        request_id: str | None,
        headers: Mapping[str, str] | None = None,
    ) -> Accepted:
        """Deliver a signal to an open execution."""
        signal = self.make_signal(name, value, headers)
        key = self.make_request_key("signal", request_id, target)
        return _expect(Accepted, await self.reach(org, target, signal, key))

    def make_reply_key(self, kind: str, request_id: str | None, scope: str) -> RequestKey:
        """The key under which a reply is kept: that of the request id, or one that only this call knows."""
        key = self._key(kind, request_id, None, scope)
        if key is not None:
            return key
        now = self._clock.now()
        own = make_execution_id(now, self._entropy(62))
        return RequestKey(MADE_UP, own, now + round(self._config.request_ttl * SECOND))

    async def cancel(self, org: str, target: str, reason: str, request_id: str | None = None) -> bool:
        """Ask an execution to cancel; False if it is closed."""
        key = self._key("cancel", request_id, None, target)
        return _expect(Handled, await self.reach(org, target, self.make_cancel(reason), key)).is_done

    def make_cancel(self, reason: str, request_id: str | None = None, target: str = "") -> Cancel:
        """A request to cancel, whose reason is checked; with its key, for an inbox, if it has a request id."""
        return Cancel(reason=check_reason(reason), request=self._key("cancel", request_id, None, target))

    async def terminate(self, org: str, target: str, reason: str, request_id: str | None = None) -> bool:
        """End an execution at once; False if it is closed."""
        order, key = Terminate(reason=check_reason(reason)), self._key("terminate", request_id, None, target)
        return _expect(Handled, await self.reach(org, target, order, key)).is_done

    def make_call(
        self, org: str, kind: str, request_id: str | None, scope: str = "", execution_id: str = ""
    ) -> KeyedCall | None:
        """What makes a repeated call safe that changes something outside of batches; None without a request id."""
        key = self._key(kind, request_id, None, scope)
        if key is None:
            return None
        check_identifier(org, "the org")
        return KeyedCall(RequestRow(org, key.kind, key.key, execution_id, None, key.expires_at), self._clock.now())

    async def reach(self, org: str, target: str, envelope: AnyEnvelope, key: RequestKey | None = None) -> Answer:
        """Deliver an envelope to an open execution, by workflow id or execution id; what is answered after the commit."""
        check_identifier(org, "the org")
        check_identifier(target, "the id of an execution")
        try:
            return await self._reach_open(org, target, envelope, key)
        except (ExecutionClosed, ExecutionNotFound):
            known = None if key is None else await self._recall(org, key)
            if known is None:
                raise
            return answer_remembered(Request(org, envelope, key=key), known)

    async def _recall(self, org: str, key: RequestKey) -> RequestRow | None:
        """What is remembered of a request now. The execution may have closed by it after its batch had looked."""
        transaction = await self._store.begin()
        try:
            found = await transaction.read_requests([key_id_of(org, key)], self._clock.now())
        finally:
            await transaction.rollback()
        return found.get(key_id_of(org, key))

    async def _reach_open(self, org: str, target: str, envelope: AnyEnvelope, key: RequestKey | None) -> Answer:
        if may_be_execution_id(target):  # no question comes first: calls arrive in the order in which they were made
            try:
                return await self.send(Request(org, envelope, execution_id=target, key=key))
            except ExecutionNotFound:
                pass  # so it is a workflow id, if anything
        return await self.send(Request(org, envelope, workflow_id=target, key=key))

    async def find(self, org: str, target: str) -> ExecutionRow | None:
        """The row of an execution by its id, or of the newest by workflow id."""
        check_identifier(org, "the org")
        check_identifier(target, "the id of an execution")
        row = await self._shown.find_execution(org, target) if may_be_execution_id(target) else None
        return row or await self._shown.find_latest(org, target)

    async def find_or_raise(self, org: str, target: str, verb: str) -> ExecutionRow:
        """As `find`, but raises ExecutionNotFound if there is none, after a look into the inbox."""
        row = await self.find(org, target)
        if row is None:  # its start may have come by a user's transaction, and wait to be taken
            await self.send(WorkflowIdLookup(org, target))
            row = await self.find(org, target)
        if row is None:
            raise missing_error(org, target, verb)
        return row

    async def find_started(self, org: str, workflow_id: str, execution_id: str, verb: str) -> ExecutionRow:
        """What became of a start that came by a user's transaction: its execution, or the one that was open already."""
        check_identifier(org, "the org")
        check_identifier(workflow_id, "the workflow id")
        check_identifier(execution_id, "the id of an execution")
        await self.send(WorkflowIdLookup(org, workflow_id))
        row = await self._shown.find_execution(org, execution_id) or await self._shown.find_latest(org, workflow_id)
        if row is None:
            raise missing_error(org, workflow_id, verb)
        return row

    # --- parts ---

    def make_request_key(self, kind: str, request_id: str | None, scope: str) -> RequestKey | None:
        """What makes a repeated call of a kind safe: its request id, which counts within its scope."""
        return self._key(kind, request_id, None, scope)

    def _key(self, kind: str, key: str | None, ttl: Duration | None, scope: str) -> RequestKey | None:
        """A request id counts within its `scope`, the receiver that was named; an idempotency key in the whole org."""
        if key is None:
            if ttl is not None:
                raise InvalidArguments(
                    "Expected an idempotency key with its time-to-live, but there is none. Pass both or neither."
                )
            return None
        if kind not in KEY_SCOPES:
            raise TypeError(f"expected a kind of call that KEY_SCOPES lists, but got {kind!r}")
        check_identifier(key, "the idempotency key" if kind == "start" else "the request id")
        length = (
            round(self._config.request_ttl * SECOND) if ttl is None else to_micros(ttl, "the idempotency key's time-to-live")
        )
        return RequestKey(kind, f"{scope}\n{key}" if scope else key, self._clock.now() + length)

    async def send(self, request: AnyRequest) -> Answer:
        """Hand a request to the next batch; what it is answered after the commit."""
        request.future = asyncio.get_running_loop().create_future()
        self._submit(request)
        return await request.future


def _expect(kind: type[A], answer: Answer) -> A:
    """The answer to a request, which is of the kind that its envelope gets."""
    if not isinstance(answer, kind):
        raise TypeError(f"expected {kind.__name__} for an answer, but got {answer!r}")
    return answer


def choose_target(target: str, workflow_execution_id: str | None) -> str:
    """The id that a call names, under whichever of its two names. Raises InvalidArguments if it is given twice."""
    if workflow_execution_id is None:
        return target
    if target and target != workflow_execution_id:
        raise InvalidArguments(
            f"Expected one id of an execution, but got target={target!r} and "
            f"workflow_execution_id={workflow_execution_id!r}. Pass one of them."
        )
    return workflow_execution_id


def take_input(args: Sequence[Any], kwargs: Mapping[str, Any], workflow_input: Any) -> Sequence[Any]:
    """The arguments of a start whose only one is given as `workflow_input`."""
    if args or kwargs:
        raise InvalidArguments(
            "Expected workflow_input=… to be the workflow's only argument, but there are others. Pass it like them, by "
            "position or by the name of its parameter."
        )
    return (workflow_input,)


def may_be_execution_id(target: str) -> bool:
    """Whether an id may be one of ours rather than a workflow id."""
    return _EXECUTION_ID.fullmatch(target) is not None


def _choose(kind: type[E], value: E | str, name: str) -> E:
    try:
        return kind(value)
    except ValueError:
        options = ", ".join(repr(str(one)) for one in kind)
        raise InvalidConfiguration(f"Expected {name}=… to be one of {options}, but it is {value!r}.") from None


def check_reason(reason: str) -> str:
    """The reason if it is text that every database can keep. Raises InvalidArguments."""
    if not is_plain_text(reason):
        found = f"it is {show(reason, repr, LONGEST_SHOWN)}. Leave out NUL and lone surrogates."
    elif len(reason.encode()) > LONGEST_REASON:
        found = f"it has {len(reason)} characters. Say it shorter."
    else:
        return reason
    raise InvalidArguments(f"Expected the reason to be text of at most {LONGEST_REASON} bytes, without NUL, but {found}")
