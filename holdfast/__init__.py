"""Holdfast: durable workflows for Python. What is imported from here is the public API; nothing else is."""

from holdfast.activities.definitions import Activity, TransactionActivity
from holdfast.client.client import Client
from holdfast.client.sync_client import SyncClient
from holdfast.code.context import ChildHandle, Context, Winner
from holdfast.code.definitions import Workflow
from holdfast.core.lifecycle import Status
from holdfast.core.options import OnClosed, OnOpen, ParentClose
from holdfast.core.retry import Retry
from holdfast.engine.activities.attempt import ActivityInfo, activity_info, heartbeat, is_cancelled
from holdfast.engine.engine import Engine
from holdfast.engine.handles import SignalResponse, SignalWithStartResponse, WorkflowHandle
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.payload_codecs import EncodedPayload, PayloadCodec
from holdfast.engine.sync_verbs import SyncWorkflowHandle
from holdfast.engine.use_cases.transactional_outbox import TransactionWork
from holdfast.engine.views import ExecutionInfo, History, RecoveryReport
from holdfast.errors import (
    ActivityCancelled,
    ActivityError,
    ActivityFailed,
    ActivityLost,
    ActivityTimedOut,
    ApplicationFailure,
    ChildWorkflowFailed,
    ExecutionBlocked,
    ExecutionTimedOut,
    ExternalSignalFailed,
    HoldfastError,
    ResultTimedOut,
    RetryAfter,
    SideEffectFailed,
    WorkflowCancelled,
    WorkflowFailed,
    WorkflowTerminated,
)
from holdfast.version import __version__ as __version__
from holdfast.workflow import activity, transaction, workflow

__all__ = [
    "Activity",
    "ActivityCancelled",
    "ActivityError",
    "ActivityFailed",
    "ActivityInfo",
    "ActivityLost",
    "ActivityTimedOut",
    "ApplicationFailure",
    "ChildHandle",
    "ChildWorkflowFailed",
    "Client",
    "Context",
    "EncodedPayload",
    "Engine",
    "ExecutionBlocked",
    "ExecutionInfo",
    "ExecutionTimedOut",
    "ExternalSignalFailed",
    "History",
    "HoldfastError",
    "NodeInfo",
    "OnClosed",
    "OnOpen",
    "ParentClose",
    "PayloadCodec",
    "RecoveryReport",
    "ResultTimedOut",
    "Retry",
    "RetryAfter",
    "SideEffectFailed",
    "SignalResponse",
    "SignalWithStartResponse",
    "Status",
    "SyncClient",
    "SyncWorkflowHandle",
    "TransactionActivity",
    "TransactionWork",
    "Winner",
    "Workflow",
    "WorkflowCancelled",
    "WorkflowFailed",
    "WorkflowHandle",
    "WorkflowTerminated",
    "activity",
    "activity_info",
    "heartbeat",
    "is_cancelled",
    "transaction",
    "workflow",
]
