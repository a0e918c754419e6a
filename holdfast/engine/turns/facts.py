"""What the routing of a batch knows: from its claims, or to be looked up before everything is routed anew."""

from __future__ import annotations

from holdfast.core import codec
from holdfast.core.ids import derive_execution_id, instant_of
from holdfast.core.signals import closed_error, missing_error
from holdfast.engine.rows import from_row
from holdfast.engine.turns.claims import Claims, Lookups, WorkflowKey
from holdfast.errors import CorruptStore, HoldfastError, NewerFormat
from holdfast.store.rows import ExecutionRow, InboxRow, RequestKeyId, RequestRow


class FactMissing(Exception):
    """An arrival cannot be routed before something is looked up."""


class Facts:
    """Answers the questions of one routing pass; what the claims do not tell goes into `lookups`, by FactMissing."""

    def __init__(self, claims: Claims, *, exclusive: bool) -> None:
        self._claims = claims
        self._exclusive = exclusive
        self.open_ids = dict(claims.open_ids)
        """Who is open under the workflow ids that are held, those included that this batch starts."""
        self.lookups = Lookups()

    def holds_id(self, key: WorkflowKey) -> bool:
        """Whether a workflow id is held by this batch; False if another node has it."""
        if key in self.open_ids:
            return True
        if key not in self._claims.asked_ids:
            self.lookups.workflow_ids[key] = None
            raise FactMissing
        return False

    def holds_key(self, key_id: RequestKeyId) -> bool:
        """Whether a request's key is held against other nodes; False if another node has it."""
        if self._exclusive or key_id in self._claims.held_keys:
            return True
        if key_id not in self._claims.asked_keys:
            self.lookups.request_keys[key_id] = None
            raise FactMissing
        return False

    def find_row(self, execution_id: str) -> ExecutionRow | None:
        """The row of an execution, whether it is held or not; None if there is no such execution."""
        row = self._claims.rows.get(execution_id)
        if row is not None:
            return row
        if execution_id not in self._claims.others:
            self.lookups.rows[execution_id] = None
            raise FactMissing
        return self._claims.others[execution_id]

    def find_latest(self, key: WorkflowKey) -> ExecutionRow | None:
        """The newest execution under a workflow id, open or closed; None if there never was one."""
        if key not in self._claims.latest:
            self.lookups.latest[key] = None
            raise FactMissing
        return self._claims.latest[key]

    def find_remembered(self, key_id: RequestKeyId) -> RequestRow | None:
        """What a request with this key led to in an earlier batch; None if the key was not used, or that is forgotten."""
        if key_id not in self._claims.remembered:
            self.lookups.remembered[key_id] = None
            raise FactMissing
        return self._claims.remembered[key_id]

    def find_latest_run(self, row: InboxRow) -> str | None:
        """The open run of the child to whose first run a parent sent something, where retention has removed that run."""
        opened = self.open_ids.get((row.org, row.workflow_id)) if row.execution_id and row.workflow_id else None
        found = None if opened is None else self.find_row(opened)
        return opened if found is not None and _is_run_of_child(found, row.execution_id) else None

    def find_refusal(self, org: str, execution_id: str, workflow_id: str, verb: str) -> HoldfastError:
        """Why nobody can take an envelope: its execution is closed, or there is none."""
        row = self.find_row(execution_id) if execution_id else self.find_latest((org, workflow_id))
        if row is None or row.org != org:
            return missing_error(org, execution_id or workflow_id, verb)
        try:
            return closed_error(from_row(row), verb)
        except (CorruptStore, NewerFormat) as error:
            return error


def _is_run_of_child(found: ExecutionRow, first_run: str) -> bool:
    """Whether an execution is a run of the child that began under this execution id: that follows from its parent."""
    try:
        parent = codec.decode_details(found.details).parent
        if parent is None:
            return False
        return first_run == derive_execution_id(instant_of(first_run), parent.execution_id, parent.number)
    except (CorruptStore, NewerFormat, ValueError):  # it cannot be read, or that is no id of ours
        return False
