"""Requests for executions that another node holds: they go into the inboxes of those, and their callers are answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.core import codec
from holdfast.core.envelopes import ANSWERED, Cancel, Terminate
from holdfast.core.signals import closed_error, missing_error
from holdfast.engine.encoded_store import show_encoded
from holdfast.engine.requests import Accepted, AnyRequest, Handled, Opened, ReplyFollows
from holdfast.engine.rows import from_row
from holdfast.engine.turns.plan import Forward
from holdfast.errors import HoldfastError, StoreError
from holdfast.store.nodes import WakeReason
from holdfast.store.rows import InboxRow

if TYPE_CHECKING:
    from holdfast.store.contract import Store


class Forwarder:
    """Delivers envelopes to executions that other nodes hold. `submit` takes what has to be routed anew."""

    def __init__(self, store: Store, submit: Callable[[AnyRequest], None]) -> None:
        self._store = store
        self._submit = submit

    async def forward(self, forwards: Sequence[Forward]) -> None:
        """Put envelopes into the inboxes of executions that other nodes hold, and answer who sent them."""
        rows = [
            InboxRow(one.request.org, one.execution_id, "", codec.encode(one.request.keyed_envelope), at=one.request.at)
            for one in forwards
        ]
        try:
            delivered = await self._store.deliver(rows)
        except StoreError as error:
            # Whether they arrived may be open: callers are told so, and what the engine itself sends is sent again, since
            # a second one is stale.
            for one in forwards:
                if one.request.future is None:
                    self._submit(one.request)
                else:
                    one.request.resolve(error)
            return
        refused = [one for one, is_accepted in zip(forwards, delivered, strict=True) if not self._answer(one, is_accepted)]
        await self._store.wake(WakeReason.WORK)
        for one in refused:  # at last: to say why, the store is asked, and that may fail
            try:
                one.request.resolve(await self._find_refusal(one))
            except StoreError as error:
                one.request.resolve(error)

    def _answer(self, forward: Forward, is_accepted: bool) -> bool:
        """Answer a request that was delivered or not; False if it has to be found out why it was not."""
        request, is_order = forward.request, isinstance(forward.request.envelope, Cancel | Terminate)
        if is_accepted:
            if isinstance(request.signal or request.envelope, ANSWERED):
                request.resolve(ReplyFollows(forward.execution_id))
            elif request.is_start:
                request.resolve(Opened(forward.execution_id, created=False))
            else:
                request.resolve(Handled() if is_order else Accepted(forward.execution_id, None))
        elif request.is_start or (request.workflow_id and request.future is not None):
            self._submit(request)  # it closed meanwhile: whether another is open is decided anew
        elif is_order:
            request.resolve(Handled(is_done=False))
        else:
            return False
        return True

    async def _find_refusal(self, forward: Forward) -> HoldfastError:
        request = forward.request
        row = await show_encoded(self._store).find_execution(request.org, forward.execution_id)
        if row is None:
            return missing_error(request.org, forward.execution_id, request.verb)
        return closed_error(from_row(row), request.verb)
