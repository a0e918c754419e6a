"""Every error that Holdfast raises, in one tree.

    HoldfastError
    ├── InvalidRequest              what was asked for cannot be right; nothing was stored
    │   ├── InvalidIdentifier       a workflow id, name, org or queue
    │   ├── InvalidDuration         negative, absurd, not a number
    │   ├── InvalidTime             a date-time without a zone
    │   ├── InvalidSchedule         a schedule that cannot be read, or that would never fire
    │   ├── InvalidArguments        arguments that do not fit the function's signature or hints
    │   │   └── FilterError         a filter or an order of a list that cannot be parsed, and where
    │   ├── InvalidDefinition       a function that cannot be a workflow or an activity
    │   │   └── DuplicateName
    │   ├── InvalidConfiguration    an engine option
    │   │   └── NodeNameTaken       another process works under it
    │   ├── InvalidProcess          files that cannot be deployed; `problems` lists all that is wrong with them
    │   ├── UnknownWorkflow
    │   │   └── ProcessNotStartable a process that was undeployed or disabled, or that cannot be started in this way
    │   ├── UnknownActivity
    │   ├── UnknownUpdate           no such handler of updates; `known` are those that there are
    │   ├── UnknownQuery            no such handler of queries; `known` are those that there are
    │   ├── ReadOnlyHandler         a query or a validator asked for something that would change the execution
    │   ├── UnknownEvent            no type of events has that name
    │   ├── FeelError               an expression that cannot be evaluated at all
    │   │   ├── FeelSyntaxError     it cannot be parsed: line, column and what was expected
    │   │   └── FeelLimitExceeded   it would take too many steps, or too much memory
    │   ├── DmnError                a decision model that cannot be used; all that is wrong with it
    │   └── PayloadError
    │       ├── EncodingError       a value that JSON cannot hold, or that would not come back as it was
    │       │   └── InvalidResult   the result of a function does not fit its return hint
    │       ├── DecodingError       JSON that does not fit the type hint
    │       ├── CodecError          what a codec cannot encode or decode
    │       └── PayloadTooLarge
    ├── NotFound
    │   ├── ExecutionNotFound
    │   ├── TaskNotFound
    │   ├── ScheduleNotFound
    │   ├── UnknownDefinition       no such process, or no such version of it
    │   ├── IncidentNotFound        the execution has no such open incident
    │   └── MessageRefused          nobody waits for the message, nothing starts by it, and it is not to be kept
    ├── Conflict                    the request is fine, the moment is not; nothing was stored
    │   ├── ExecutionClosed
    │   ├── ExecutionNotBegun       a query before the first step of the code
    │   ├── WorkflowAlreadyOpen
    │   ├── WorkflowAlreadyClosed
    │   ├── SignalLimitReached
    │   ├── LimitReached            an org has as many open executions, subscriptions or kept items as it may
    │   ├── TaskConflict            a human task: by the wrong person, or in the wrong state
    │   │   ├── TaskEnded           it is completed or cancelled
    │   │   ├── TaskClaimed         somebody has claimed it
    │   │   ├── TaskNotClaimed      its claimer alone may do that, and that is nobody, or somebody else
    │   │   ├── NotTaskCandidate    no assignee, candidate user or member of a candidate group
    │   │   └── TaskFormMismatch    what was filled in does not fit the form
    │   ├── ScheduleExists
    │   ├── DeploymentRefused       the id of a process is that of code, or its message is taken
    │   ├── UpdateRejected          by a validator; UpdateUnfinished: the workflow ended while the handler ran
    │   ├── DuplicateMessage        a message with that id is kept already
    │   ├── TooManyKept             as many messages or events of that name are kept as may be
    │   └── AlreadyDone             what may happen once has happened
    ├── StoreError
    │   ├── StoreOwned              another process owns the database
    │   ├── NotOurDatabase
    │   │   └── DatabaseNotFound    there is none at that place
    │   ├── NewerDatabase
    │   ├── OlderDatabase           and nobody asked for an upgrade
    │   ├── StoreMoved              to another database; or that is under way
    │   ├── CorruptStore            damaged, or contradicting itself
    │   ├── NewerFormat             sound, but only a newer Holdfast can read it
    │   │   └── CodecMissing        values that only the codec which encoded them can decode
    │   └── StoreUnavailable        read-only, disk full, connection lost, timed out
    │       └── OutcomeUnknown      the commit may or may not have happened
    ├── ExecutionBlocked            raised by `result()` if it is not to wait for a blocked execution
    ├── ResultTimedOut              raised by `result(timeout=…)`; also a TimeoutError
    ├── UpdateFailed                its handler raised; QueryFailed: likewise, or no replay is possible
    ├── AnswerTimedOut              raised by update, query and wait_for after `timeout=…`; also a TimeoutError
    ├── NobodyAnswers               no process is there that has the code
    ├── EngineClosed
    ├── ConnectionRefused           what takes calls for a database is another user's, or not what it should be
    ├── WrongEventLoop              an engine was awaited in another loop than its own
    ├── DeterminismError
    │   ├── NonDeterminismError     replay issued another command than history records
    │   ├── ForbiddenInWorkflow     the guard caught a clock, random source, file, socket, thread
    │   ├── TurnTooLong             a turn that does not come to rest
    │   └── TurnTooLarge            a turn that would write more history than one may
    ├── WorkflowError               how an execution ended, raised by `result()`
    │   ├── WorkflowFailed
    │   │   └── ExecutionTimedOut   its execution_timeout or run_timeout passed
    │   ├── WorkflowCancelled
    │   └── WorkflowTerminated
    └── StepError                   what a workflow's own code can catch
        ├── ActivityError
        │   ├── ActivityFailed
        │   ├── ActivityTimedOut
        │   ├── ActivityCancelled
        │   └── ActivityLost        it runs at most once, has begun, and nobody knows how it ended
        ├── ChildWorkflowFailed
        │   ├── ChildWorkflowCancelled
        │   └── ChildWorkflowTerminated
        ├── ExternalSignalFailed
        ├── HumanTaskCancelled      a person cancelled the task
        ├── SubscriptionFailed      a wait for something that is published could not begin
        │   └── MessageKeyTaken     another open execution waits for the same message
        ├── PublicationFailed       a message, an event or a broadcast signal of the workflow was refused
        └── SideEffectFailed

    ApplicationFailure              raised by user code to name a failure's type, details and whether to retry
    └── BpmnError                   raised by user code: an error by its code, which a diagram catches; never retried
    RetryAfter                      raised by an activity to say when its next attempt is to begin
    SimulationFailed                a simulated run that did not end as the undisturbed one did

One module for each topic; import every name from here. `roots` has the classes that the other modules stand on.
One formula for messages: "Expected to …, but …." and then what to do about it.
`STATUS_CODES` maps the tree to HTTP; the nearest class up the tree counts.
"""

from holdfast.errors.activities import (
    LONGEST_PAUSE,
    ActivityCancelled,
    ActivityError,
    ActivityFailed,
    ActivityLost,
    ActivityTimedOut,
    ApplicationFailure,
    BpmnError,
    RetryAfter,
)
from holdfast.errors.arguments import (
    FilterError,
    InvalidArguments,
    InvalidConfiguration,
    InvalidDuration,
    InvalidIdentifier,
    InvalidTime,
    NodeNameTaken,
)
from holdfast.errors.definitions import DuplicateName, InvalidDefinition, UnknownActivity, UnknownEvent, UnknownWorkflow
from holdfast.errors.determinism import (
    DeterminismError,
    ForbiddenInWorkflow,
    NonDeterminismError,
    SimulationFailed,
    TurnTooLarge,
    TurnTooLong,
)
from holdfast.errors.engines import ConnectionRefused, EngineClosed, WrongEventLoop
from holdfast.errors.executions import (
    AlreadyDone,
    ExecutionBlocked,
    ExecutionClosed,
    ExecutionNotFound,
    ExecutionTimedOut,
    LimitReached,
    ResultTimedOut,
    SignalLimitReached,
    WorkflowAlreadyClosed,
    WorkflowAlreadyOpen,
    WorkflowCancelled,
    WorkflowError,
    WorkflowFailed,
    WorkflowTerminated,
)
from holdfast.errors.expressions import DmnError, FeelError, FeelLimitExceeded, FeelSyntaxError
from holdfast.errors.handlers import (
    AnswerTimedOut,
    ExecutionNotBegun,
    NobodyAnswers,
    QueryFailed,
    ReadOnlyHandler,
    UnknownQuery,
    UnknownUpdate,
    UpdateFailed,
    UpdateRejected,
    UpdateUnfinished,
)
from holdfast.errors.payloads import CodecError, DecodingError, EncodingError, InvalidResult, PayloadError, PayloadTooLarge
from holdfast.errors.processes import (
    DeploymentRefused,
    IncidentNotFound,
    InvalidProcess,
    ProcessNotStartable,
    UnknownDefinition,
)
from holdfast.errors.publications import (
    DuplicateMessage,
    MessageKeyTaken,
    MessageRefused,
    PublicationFailed,
    SubscriptionFailed,
    TooManyKept,
)
from holdfast.errors.roots import Conflict, HoldfastError, InvalidRequest, NotFound, StepError
from holdfast.errors.schedules import InvalidSchedule, ScheduleExists, ScheduleNotFound
from holdfast.errors.status_codes import STATUS_CODES, status_code
from holdfast.errors.steps import (
    ChildWorkflowCancelled,
    ChildWorkflowFailed,
    ChildWorkflowTerminated,
    ExternalSignalFailed,
    SideEffectFailed,
)
from holdfast.errors.stores import (
    CodecMissing,
    CorruptStore,
    DatabaseNotFound,
    NewerDatabase,
    NewerFormat,
    NotOurDatabase,
    OlderDatabase,
    OutcomeUnknown,
    StoreError,
    StoreFault,
    StoreMoved,
    StoreOwned,
    StoreUnavailable,
)
from holdfast.errors.tasks import (
    HumanTaskCancelled,
    NotTaskCandidate,
    TaskClaimed,
    TaskConflict,
    TaskEnded,
    TaskFormMismatch,
    TaskNotClaimed,
    TaskNotFound,
)

__all__ = [
    "LONGEST_PAUSE",
    "STATUS_CODES",
    "ActivityCancelled",
    "ActivityError",
    "ActivityFailed",
    "ActivityLost",
    "ActivityTimedOut",
    "AlreadyDone",
    "AnswerTimedOut",
    "ApplicationFailure",
    "BpmnError",
    "ChildWorkflowCancelled",
    "ChildWorkflowFailed",
    "ChildWorkflowTerminated",
    "CodecError",
    "CodecMissing",
    "Conflict",
    "ConnectionRefused",
    "CorruptStore",
    "DatabaseNotFound",
    "DecodingError",
    "DeploymentRefused",
    "DeterminismError",
    "DmnError",
    "DuplicateMessage",
    "DuplicateName",
    "EncodingError",
    "EngineClosed",
    "ExecutionBlocked",
    "ExecutionClosed",
    "ExecutionNotBegun",
    "ExecutionNotFound",
    "ExecutionTimedOut",
    "ExternalSignalFailed",
    "FeelError",
    "FeelLimitExceeded",
    "FeelSyntaxError",
    "FilterError",
    "ForbiddenInWorkflow",
    "HoldfastError",
    "HumanTaskCancelled",
    "IncidentNotFound",
    "InvalidArguments",
    "InvalidConfiguration",
    "InvalidDefinition",
    "InvalidDuration",
    "InvalidIdentifier",
    "InvalidProcess",
    "InvalidRequest",
    "InvalidResult",
    "InvalidSchedule",
    "InvalidTime",
    "LimitReached",
    "MessageKeyTaken",
    "MessageRefused",
    "NewerDatabase",
    "NewerFormat",
    "NobodyAnswers",
    "NodeNameTaken",
    "NonDeterminismError",
    "NotFound",
    "NotOurDatabase",
    "NotTaskCandidate",
    "OlderDatabase",
    "OutcomeUnknown",
    "PayloadError",
    "PayloadTooLarge",
    "ProcessNotStartable",
    "PublicationFailed",
    "QueryFailed",
    "ReadOnlyHandler",
    "ResultTimedOut",
    "RetryAfter",
    "ScheduleExists",
    "ScheduleNotFound",
    "SideEffectFailed",
    "SignalLimitReached",
    "SimulationFailed",
    "StepError",
    "StoreError",
    "StoreFault",
    "StoreMoved",
    "StoreOwned",
    "StoreUnavailable",
    "SubscriptionFailed",
    "TaskClaimed",
    "TaskConflict",
    "TaskEnded",
    "TaskFormMismatch",
    "TaskNotClaimed",
    "TaskNotFound",
    "TooManyKept",
    "TurnTooLarge",
    "TurnTooLong",
    "UnknownActivity",
    "UnknownDefinition",
    "UnknownEvent",
    "UnknownQuery",
    "UnknownUpdate",
    "UnknownWorkflow",
    "UpdateFailed",
    "UpdateRejected",
    "UpdateUnfinished",
    "WorkflowAlreadyClosed",
    "WorkflowAlreadyOpen",
    "WorkflowCancelled",
    "WorkflowError",
    "WorkflowFailed",
    "WorkflowTerminated",
    "WrongEventLoop",
    "status_code",
]

for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__  # so that tracebacks and pickles name the place from which users import
