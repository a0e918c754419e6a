"""The verbs: what can be asked of Holdfast about executions, whoever takes the call. One module per topic.

`Engine` takes calls in process, `Client` takes them to the database or to the process that owns it, and `SyncClient` does so
for code without an event loop. All have these methods with these parameters; tests compare them, and those of clients are
written by `python -m tools.facades` from these protocols. What only an engine can do (opening, transactions, copies of
executions) is not here.

Signatures say `builtins.list`, since facades have a method `list`.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.engine.verbs.deployments import DeploymentVerbs
from holdfast.engine.verbs.executions import ExecutionVerbs
from holdfast.engine.verbs.human_tasks import TaskVerbs
from holdfast.engine.verbs.operations import OperationVerbs
from holdfast.engine.verbs.pauses import PauseVerbs
from holdfast.engine.verbs.publications import PublicationVerbs
from holdfast.engine.verbs.queries_and_updates import QueryAndUpdateVerbs
from holdfast.engine.verbs.repairs import RepairVerbs
from holdfast.engine.verbs.schedules import ScheduleVerbs
from holdfast.engine.verbs.stale import StaleWorkVerbs
from holdfast.engine.verbs.starts import StartVerbs


class Verbs(
    StartVerbs,
    ExecutionVerbs,
    PauseVerbs,
    QueryAndUpdateVerbs,
    PublicationVerbs,
    TaskVerbs,
    ScheduleVerbs,
    OperationVerbs,
    StaleWorkVerbs,
    RepairVerbs,
    DeploymentVerbs,
    Protocol,
):
    """Everything that can be done with executions from outside of them, by an engine or a client."""
