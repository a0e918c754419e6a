"""Failures as exceptions again: with the classes that users know, the recorded trace, and the chain of causes.

Theory of operation
-------------------
History holds the *name* of an exception's class. What a workflow, or a caller, gets is an instance of Holdfast's class
(`ActivityFailed`) that is an instance of the named class too, if there is one under that name: `except CardDeclined` and
`except ActivityFailed` both catch it. Its `__cause__` is the exception as it was raised, its cause the next one, and so on.

*Where classes are looked for.* Among those that were registered (`@activity(errors=[…])`), then by name in the modules of
the activity and of the workflow as they are loaded, then among Python's own. Nothing is imported and no attribute is asked
for: a name in a database cannot make code run. The same code finds the same classes on every replay.

*How instances are made.* No code of the class runs: neither `__init__` nor `__new__`, whose arguments nobody recorded, nor
`__init_subclass__`, nor `__str__`. So attributes that `__init__` would set are missing; `message` and `details` are there.

*What is never combined.* Exceptions that steer Python or retries (`SystemExit`, `StopIteration`, `RetryAfter`), groups, and
Holdfast's own: a failed activity that met a NonDeterminismError elsewhere is not one of this workflow. Classes with a
metaclass of their own, or whose layout in memory does not allow it, cannot be combined. Then the instance is one of
Holdfast's class alone, and `type` says the name.
"""

from __future__ import annotations

import builtins
import functools
from abc import ABCMeta
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from holdfast import errors
from holdfast.core.bpmn_errors import BPMN_ERROR, read_attributes
from holdfast.core.failures import RECORDED_FOREIGN, RECORDED_TRACE, Failure, decode_failure_details, find_original
from holdfast.errors import (
    ApplicationFailure,
    BpmnError,
    HoldfastError,
    RetryAfter,
    StepError,
    WorkflowError,
    WorkflowFailed,
)

E = TypeVar("E", bound=HoldfastError)

_TEXT: Final = "__holdfast_text__"
_STEERING: Final = (StopIteration, StopAsyncIteration, BaseExceptionGroup, RetryAfter)
_PLAIN: Final = (type, ABCMeta)
"""Metaclasses that have no code of users."""
_MEMBERS: Final = ("args", "__cause__", "__context__", "__suppress_context__", "__traceback__", "__dict__")
"""Members of every exception, which a user's class may have replaced by properties of its own."""
_HOOKS: Final = ("__str__", "__repr__", "__getattr__", "__getattribute__", "__setattr__", "__eq__", "__class__", *_MEMBERS)
_HEAP_TYPE: Final = 1 << 9
"""The flag of classes that were made by a `class` statement, or by its like in C."""
_OURS: Final = (
    "attempt",
    "details",
    "execution_id",
    "message",
    "name",
    "non_retryable",
    "trace",
    "type",
    "workflow_id",
)
"""Attributes of Holdfast's exceptions: they win over properties of the same name in a user's class."""


class KnownErrors(msgspec.Struct, frozen=True):
    """Where the classes of exceptions are looked for, in this order: registered ones, modules, built-in ones."""

    registered: tuple[type[Exception], ...] = ()
    modules: tuple[Mapping[str, Any], ...] = ()
    has_builtins: bool = True

    def find(self, failure: Failure) -> type[Exception] | None:
        """The class that a failure names; None if there is none."""
        name = failure.type
        for one in self.registered:
            if one.__name__ == name:
                return one
        found: list[Any] = [module.get(name) for module in self.modules]
        if name == ApplicationFailure.__name__:
            found.append(ApplicationFailure)
        if name == BPMN_ERROR and not failure.foreign:
            found.append(BpmnError)
        if self.has_builtins and not failure.foreign:
            found.append(vars(builtins).get(name))
        for cls in found:
            if isinstance(cls, type) and type(cls) in _PLAIN and issubclass(cls, Exception) and cls.__name__ == name:
                return cls
        return None


def read_globals(function: Any) -> tuple[Mapping[str, Any], ...]:
    """The names of the module that a function was defined in, as it is loaded. Of a wrapped one those of both modules."""
    found: list[Mapping[str, Any]] = []
    for _ in range(20):
        if function is None:
            break
        plain = getattr(function, "__func__", getattr(function, "func", function))  # of a method, of a partial
        names = getattr(plain, "__globals__", None)
        if isinstance(names, dict) and not any(names is one for one in found):
            found.append(names)
        function = getattr(plain, "__wrapped__", None)
    return tuple(found)


def rebuild(kind: type[E], text: str, failure: Failure, known: KnownErrors, **attributes: Any) -> E:
    """An exception of a class of ours for a failure, and of the class that the failure names too, with its causes.

    `text` is what `str()` gives; `message`, `type`, `details` and `trace` are the failure's.
    """
    cls = known.find(find_original(failure))
    combined = combine(kind, cls) if cls is not None else None
    made: E = _instantiate(combined or kind, failure.message if combined else text)
    own = _own(made)
    own.update(attributes)
    own.update(type=failure.type, message=failure.message, details=decode_failure_details(failure), trace=failure.trace)
    if combined is not None and issubclass(combined, BpmnError):
        own.update(read_attributes(failure))
    _set_text(made, text)
    made.__cause__ = _rebuild_cause(failure, known)
    return made


def _rebuild_cause(failure: Failure, known: KnownErrors) -> BaseException:
    """The exception that a failure tells of, as it was raised, with those that led to it."""
    made = _rebuild_alone(failure, known)
    own = _own(made)
    own[RECORDED_TRACE] = failure.trace
    if failure.foreign:
        own[RECORDED_FOREIGN] = True
    details = decode_failure_details(failure)
    if details is not None or isinstance(made, ApplicationFailure):
        own["details"] = details
    if isinstance(made, ApplicationFailure):  # what its `__init__` sets, which was not called for a subclass
        own.update(type=failure.type, non_retryable=failure.non_retryable)
    if isinstance(made, BpmnError):
        own.update(read_attributes(failure))
    if failure.trace:
        lines = "\n".join(f"  {line}" for line in failure.trace.splitlines())
        notes: list[str] = own.setdefault("__notes__", [])  # `add_note` would ask the class for them
        notes.append(f"Raised there, as recorded (innermost frame last):\n{lines}")
    if failure.cause is not None:
        made.__cause__ = _rebuild_cause(failure.cause, known)
    return made


def _rebuild_alone(failure: Failure, known: KnownErrors) -> BaseException:
    cls = known.find(failure) or (None if failure.foreign else _find_own(failure.type))
    if cls is not None and issubclass(cls, HoldfastError):
        return _rebuild_ours(cls, failure)
    if cls is not None and not issubclass(cls, _STEERING):
        exact: type[Exception] | None = cls if _has_no_hooks(cls) else combine(None, cls)
        try:
            if exact is not None:
                again: Exception = _instantiate(exact, failure.message)
                if exact is not cls:
                    _set_text(again, failure.message)
                return again
        except TypeError:  # a class in C that cannot be made so
            pass
    made = ApplicationFailure(failure.message, type=failure.type, non_retryable=failure.non_retryable)
    if cls is not ApplicationFailure:
        made.add_note(f"It was raised as {failure.type}.")
    return made


def _rebuild_ours(ours: type[HoldfastError], failure: Failure) -> HoldfastError:
    made: HoldfastError = _instantiate(ours, failure.message)
    own = _own(made)
    own["message"] = failure.message
    if issubclass(ours, StepError | WorkflowError):
        told = failure.cause or Failure(type="", message=failure.message)
        own.update(name="", attempt=0) if issubclass(ours, StepError) else own.update(workflow_id="", execution_id="")
        if issubclass(ours, StepError | WorkflowFailed):
            own.update(type=told.type, message=told.message, details=decode_failure_details(told), trace=told.trace)
    return made


def _has_no_hooks(cls: type[Any]) -> bool:
    """Whether an instance can be shown and asked for attributes without any code of the class."""
    own = [
        vars(one) for one in cls.__mro__ if one not in (BaseException, object) and not issubclass(one, ApplicationFailure)
    ]
    return type(cls) in _PLAIN and not any(name in members for members in own for name in _HOOKS)


def _find_own(name: str) -> type[Exception] | None:
    """A class of Python's or of Holdfast's own."""
    found = vars(builtins).get(name) or vars(errors).get(name)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


# --- classes and instances ---


class _Rebuilt:
    """First among the bases of what is combined: methods of a user's class, which need its attributes, are not called."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    __setattr__ = object.__setattr__
    __getattribute__ = object.__getattribute__

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __init_subclass__(cls, **_options: Any) -> None:
        """Called instead of the hook of a user's class, which may count its subclasses."""

    def __str__(self) -> str:
        text: str = _own(self).get(_TEXT, "")
        return text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> Any:
        """Pickled as an exception of Holdfast's class alone: where it is read, there may be no other."""
        own = {key: value for key, value in _own(self).items() if key != RECORDED_TRACE}
        return _unpickle, (type(self).__name__, str(self), own)

    def __copy__(self) -> Any:
        made = _instantiate(type(self), str(self))
        BaseException.args.__set__(made, BaseException.args.__get__(self))  # type: ignore[attr-defined]
        _own(made).update(_own(self))
        made.__cause__ = vars(BaseException)["__cause__"].__get__(self)
        return made

    def __deepcopy__(self, _memo: Any) -> Any:
        return self.__copy__()


def _unpickle(name: str, text: str, own: dict[str, Any]) -> Exception:
    ours = vars(errors).get(name)
    if isinstance(ours, type) and issubclass(ours, HoldfastError):
        made: Exception = _instantiate(ours, text)
    else:
        made = ApplicationFailure(text, type=name)
    _own(made).update(own)
    return made


def combine(kind: Any, cls: Any) -> type[Any] | None:
    """The class of what is an instance of both; None if there can be none.

    Without `kind`: the class of what is an instance of the other alone, and shows the text that is recorded.
    """
    if issubclass(cls, (*_STEERING, HoldfastError)) or type(cls) not in _PLAIN:
        return None
    return _combine(kind, cls)


@functools.lru_cache(maxsize=1_000)
def _combine(kind: Any, cls: Any) -> type[Any] | None:
    named: type[Any] = kind or cls
    members: dict[str, Any] = {**dict.fromkeys(_OURS), "non_retryable": False} if kind is not None else {}
    members["__class__"] = vars(object)["__class__"]
    members.update({name: vars(BaseException)[name] for name in _MEMBERS})
    members.update(__module__=named.__module__, __qualname__=named.__qualname__, __doc__=named.__doc__)
    bases = (_Rebuilt, cls) if kind is None else (_Rebuilt, kind, cls)
    try:
        made: type[Any] = type(cls)(named.__name__, bases, members)
        _instantiate(made, "")
    except TypeError:  # their layouts or the order of their bases cannot be brought together
        return None
    return made


def _instantiate(cls: type[Any], message: str) -> Any:
    """An instance whose `args` are the message, made without any code of a user's class."""
    native = next(base for base in cls.__mro__ if base is not object and not base.__flags__ & _HEAP_TYPE)
    made = native.__new__(cls, message)
    vars(BaseException)["args"].__set__(made, (message,))
    return made


def _set_text(error: BaseException, text: str) -> None:
    _own(error)[_TEXT] = text
    if isinstance(error, SyntaxError):  # tracebacks show nothing else of it
        vars(SyntaxError)["msg"].__set__(error, text)


def _own(error: object) -> dict[str, Any]:
    own: dict[str, Any] = vars(BaseException)["__dict__"].__get__(error)
    return own


def find_sources(*functions: Any, registered: Sequence[type[Exception]] = (), has_builtins: bool = True) -> KnownErrors:
    """Where to look for what functions raise: in their modules, the first one's first, and among registered classes."""
    modules = {id(names): names for one in functions for names in read_globals(one)}
    return KnownErrors(tuple(registered), tuple(modules.values()), has_builtins)


def find_no_errors() -> KnownErrors:
    """Where those look who have no code: nowhere."""
    return KnownErrors(has_builtins=False)
