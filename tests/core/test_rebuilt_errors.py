"""Failures with the chain of what led to them, and the exceptions that are made of them again."""

from __future__ import annotations

import builtins
import copy
import pickle
import sys
import traceback
from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from holdfast.core.failures import DEEPEST_CHAIN, Failure, describe_exception, drop_traces
from holdfast.core.rebuilt_errors import KnownErrors, find_sources, rebuild
from holdfast.errors import ActivityFailed, ApplicationFailure, ForbiddenInWorkflow, HoldfastError, WorkflowFailed


class CardDeclined(Exception):
    """Needs arguments, and has methods that need what its `__init__` sets."""

    def __init__(self, code: int, *, bank: str) -> None:
        super().__init__(f"declined by {bank}")
        self.code = code

    def __init_subclass__(cls) -> None:
        raise RuntimeError("this class counts its subclasses")

    def __str__(self) -> str:
        return f"code {self.code}"

    __repr__ = __str__


class WithProperties(Exception):
    @property
    def type(self) -> str:
        return "mine"

    @property
    def message(self) -> str:
        raise RuntimeError("not ready")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


@dataclass
class AsData(Exception):
    code: int


class Keyed(Exception):
    """Looks up each name that it does not have, as containers of settings do."""

    def __getattr__(self, name: str) -> Any:
        return dict[str, Any]()[name]


class Slotted(Exception):
    __slots__ = ("code",)


class Abstract(Exception, ABC):
    pass


class Meta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


class WithMetaclass(Exception, metaclass=Meta):
    pass


class NoDetails(Exception):
    def __init__(self, details: object) -> None:
        super().__init__("with details")
        self.details = details


HERE = KnownErrors(modules=(globals(),))


def raise_again(error: BaseException, known: KnownErrors = HERE) -> ActivityFailed:
    """What a workflow gets for an exception of an activity, through JSON as a store keeps it."""
    failure = msgspec.json.decode(msgspec.json.encode(describe_exception(error)), type=Failure)
    return rebuild(ActivityFailed, f"it raised {failure.type}", failure, known, name="charge", attempt=1)


def catch(function: Any) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


def chain_of(error: BaseException | None) -> list[str]:
    names = []
    while error is not None:
        names.append(type(error).__name__)
        error = error.__cause__
    return names


ERRORS = [
    CardDeclined(5, bank="x"),
    WithProperties("no"),
    AsData(3),
    Slotted("s"),
    Keyed("k"),
    Abstract("a"),
    ValueError("v"),
    KeyError("k"),
    FileNotFoundError(2, "no such file", "f.txt"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    ImportError("i", name="x"),
    SyntaxError("s", ("f.py", 1, 2, "text")),
    TimeoutError(),
    AssertionError("a"),
    ApplicationFailure("app", details=[1]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_R3_exception_is_of_its_own_class_and_of_holdfasts(error: Exception) -> None:
    raised = raise_again(error)

    with pytest.raises(type(error)):
        raise raised
    with pytest.raises(ActivityFailed):
        raise raised
    assert (raised.type, raised.message) == (type(error).__name__, str(error))
    assert (str(raised), raised.name, raised.attempt) == (f"it raised {type(error).__name__}", "charge", 1)
    assert isinstance(raised.__cause__, type(error))
    assert str(raised.__cause__) == str(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
def test_exception_made_again_can_be_shown_copied_and_pickled(error: Exception) -> None:
    raised = raise_again(error)

    assert "it raised" in "".join(traceback.format_exception(raised))
    assert "it raised" in repr(raised)
    assert hash(raised) == hash(raised)
    for one in (copy.copy(raised), copy.deepcopy(raised)):
        assert (type(one), str(one), one.__cause__) == (type(raised), str(raised), raised.__cause__)
    pickled = pickle.loads(pickle.dumps(raised))
    assert isinstance(pickled, ActivityFailed)
    assert (str(pickled), pickled.type, pickled.message) == (str(raised), raised.type, raised.message)


def test_class_that_hides_its_class_is_combined() -> None:
    class Classless(Exception):
        @property  # type: ignore[misc]  # nobody can set it
        def __class__(self) -> Any:
            raise GeneratorExit

    failure = Failure(type="Classless", message="m")
    raised = rebuild(ActivityFailed, "t", failure, KnownErrors(registered=(Classless,)))

    assert isinstance(raised, Classless)
    assert isinstance(raised.__cause__, Exception)


def test_class_is_combined_once() -> None:
    assert type(raise_again(ValueError("a"))) is type(raise_again(ValueError("b")))


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration(1),
        ExceptionGroup("several", [ValueError("a")]),
        WithMetaclass("m"),
        ForbiddenInWorkflow("not here"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_cannot_be_combined_is_told_by_its_type(error: BaseException) -> None:
    raised = raise_again(error)

    assert type(raised) is ActivityFailed
    assert not isinstance(raised, type(error))
    assert raised.type == type(error).__name__
    assert raised.__cause__ is not None


def test_class_that_nobody_knows_is_told_by_its_type() -> None:
    raised = raise_again(CardDeclined(5, bank="x"), KnownErrors())

    assert type(raised) is ActivityFailed
    assert raised.type == "CardDeclined"
    cause = raised.__cause__
    assert isinstance(cause, ApplicationFailure)
    assert (cause.type, str(cause)) == ("CardDeclined", "code 5")


def test_registered_class_is_found_wherever_it_is_now() -> None:
    moved = type("CardDeclined", (Exception,), {"__module__": "elsewhere"})

    raised = raise_again(CardDeclined(5, bank="x"), KnownErrors(registered=(moved,)))

    assert isinstance(raised, moved)


def test_class_of_another_name_or_kind_is_not_taken() -> None:
    modules: tuple[Mapping[str, Any], ...] = ({"CardDeclined": ValueError}, {"CardDeclined": "text"}, {"CardDeclined": int})

    assert type(raise_again(CardDeclined(5, bank="x"), KnownErrors(modules=modules))) is ActivityFailed


def test_class_that_only_has_the_name_of_a_built_in_one_is_not_it() -> None:
    foreign = type("ConnectionError", (Exception,), {})

    raised = raise_again(foreign("lost"))

    assert not isinstance(raised, builtins.ConnectionError)
    assert not isinstance(raised.__cause__, builtins.ConnectionError)
    again = raise_again(raised)  # as a child lets it through
    assert not isinstance(again, builtins.ConnectionError)


def test_name_in_a_history_imports_nothing_and_runs_nothing() -> None:
    asked: list[str] = []
    module = type(sys)("lazy")
    module.__dict__["__getattr__"] = asked.append
    failure = Failure(type="antigravity", message="m", cause=Failure(type="os.system", message="m"))

    raised = rebuild(ActivityFailed, "t", failure, KnownErrors(modules=(vars(module),)))

    assert type(raised) is ActivityFailed
    assert asked == []
    assert "antigravity" not in sys.modules


def test_chain_of_causes_is_recorded_and_made_again() -> None:
    def fail() -> None:
        try:
            try:
                dict[str, int]()["key"]
            except KeyError:
                raise OSError("no answer")  # noqa: B904 - its context is the point
        except OSError as error:
            raise CardDeclined(5, bank="x") from error

    raised = raise_again(catch(fail))

    assert chain_of(raised.__cause__) == ["CardDeclined", "OSError", "KeyError"]
    shown = "".join(traceback.format_exception(raised))
    assert shown.index("KeyError") < shown.index("OSError") < shown.index("CardDeclined")
    assert "in test_chain_of_causes_is_recorded_and_made_again.<locals>.fail" in shown
    assert raised.trace.endswith("in test_chain_of_causes_is_recorded_and_made_again.<locals>.fail")


def test_suppressed_context_is_not_recorded() -> None:
    def fail() -> None:
        try:
            dict[str, int]()["key"]
        except KeyError:
            raise ValueError("v") from None

    assert describe_exception(catch(fail)).cause is None


def test_chain_is_bounded_and_a_cycle_ends() -> None:
    first = last = ValueError("0" * 10_000)
    for number in range(100):
        last.__cause__ = ValueError(f"{number} " + "x" * 10_000)
        last = last.__cause__
    one, two = ValueError("one"), KeyError("two")
    one.__cause__, two.__cause__ = two, one

    assert len(chain_of(raise_again(first).__cause__)) == DEEPEST_CHAIN + 1
    assert len(msgspec.json.encode(describe_exception(first))) < 20_000
    assert chain_of(raise_again(one).__cause__) == ["ValueError", "KeyError"]


def test_cause_of_a_group_is_its_first_exception() -> None:
    raised = raise_again(ExceptionGroup("several", [ExceptionGroup("inner", [ValueError("a")]), KeyError("b")]))

    assert raised.type == "ExceptionGroup"
    assert chain_of(raised.__cause__)[-1] == "ValueError"


def test_exception_passed_on_by_a_workflow_keeps_its_chain_and_its_traces() -> None:
    def fail() -> None:
        raise CardDeclined(5, bank="x") from KeyError("k")

    told = describe_exception(raise_again(catch(fail)))
    assert (told.type, told.cause and told.cause.type) == ("ActivityFailed", "CardDeclined")

    raised = rebuild(WorkflowFailed, "t", told, HERE)

    assert isinstance(raised, CardDeclined)
    assert chain_of(raised.__cause__) == ["ActivityFailed", "CardDeclined", "KeyError"]
    activity = raised.__cause__
    assert isinstance(activity, ActivityFailed)
    assert (activity.type, activity.message) == ("CardDeclined", "code 5")
    assert "in test_exception_passed_on_by_a_workflow" in activity.trace


def test_details_travel_from_any_exception_that_has_some() -> None:
    assert raise_again(NoDetails({"code": 5})).details == {"code": 5}
    assert raise_again(NoDetails(object())).details is None
    assert raise_again(NoDetails("x" * 100_000)).details is None
    cause = raise_again(NoDetails({"code": 5})).__cause__
    assert isinstance(cause, NoDetails)
    assert cause.details == {"code": 5}


def test_subclass_of_application_failure_is_recorded_by_its_name() -> None:
    class Declined(ApplicationFailure):
        pass

    assert describe_exception(Declined("no", details=1)).type == "Declined"
    assert describe_exception(Declined("no", type="other")).type == "other"
    assert describe_exception(ApplicationFailure("no")).type == "ApplicationFailure"


def test_exception_that_misleads_about_its_cause_is_recorded() -> None:
    class Misleading(Exception):
        @property
        def __cause__(self) -> Any:  # type: ignore[override]
            raise RuntimeError("no")

    assert describe_exception(Misleading("m")).message == "m"


class OwnMembers(Exception):
    """Has its own idea of what every exception has."""

    def _refuse(self) -> Any:
        raise RuntimeError("not ready")

    args = __cause__ = __context__ = __suppress_context__ = __traceback__ = __dict__ = property(_refuse)


def test_R3_exception_whose_class_replaces_members_of_every_exception_is_recorded_and_caught() -> None:
    def fail() -> None:
        raise OwnMembers("m")

    failure = describe_exception(catch(fail))
    raised = rebuild(ActivityFailed, "t", failure, KnownErrors(modules=(globals(),)))

    assert (failure.type, failure.message, "in test_R3" in failure.trace) == ("OwnMembers", "m", True)
    assert isinstance(raised, OwnMembers)
    assert (str(raised), raised.args, chain_of(raised)) == ("t", ("m",), ["ActivityFailed", "OwnMembers"])


def test_failures_of_older_histories_have_no_cause() -> None:
    old = msgspec.json.decode(b'{"type":"ValueError","message":"m"}', type=Failure)

    raised = rebuild(ActivityFailed, "t", old, KnownErrors())

    assert chain_of(raised) == ["ActivityFailed", "ValueError"]


def test_traces_are_dropped_from_the_whole_chain() -> None:
    def fail() -> None:
        try:
            raise KeyError("k")
        except KeyError as error:
            raise ValueError("v") from error

    plain = msgspec.json.decode(msgspec.json.encode(describe_exception(catch(fail))))
    drop_traces(plain)

    assert plain == {"type": "ValueError", "message": "v", "cause": {"type": "KeyError", "message": "'k'"}}


def test_modules_of_wrapped_functions_are_looked_through() -> None:
    def function() -> None: ...

    wrapped = type("Wrapped", (), {"__wrapped__": function})()

    assert isinstance(raise_again(AsData(1), find_sources(wrapped)), AsData)
    assert isinstance(raise_again(HoldfastError("h")).__cause__, HoldfastError)


class Fraud(ApplicationFailure):
    """A user's own, with an `__init__` of its own."""

    def __init__(self, score: int) -> None:
        super().__init__("stolen", details={"score": score}, non_retryable=True)


def test_R3_subclass_of_application_failure_passes_through_a_workflow_with_its_message() -> None:
    known = KnownErrors(registered=(Fraud,))
    raised = rebuild(ActivityFailed, "it failed", describe_exception(Fraud(99)), known)

    failure = describe_exception(raised)

    assert (failure.type, failure.message) == ("ActivityFailed", "it failed")
    assert failure.cause is not None
    assert (failure.cause.type, failure.cause.message, failure.cause.non_retryable) == ("Fraud", "stolen", True)
    result = rebuild(WorkflowFailed, "the workflow failed", failure, known)
    assert isinstance(result, Fraud)
    assert result.__cause__ is not None
    original = result.__cause__.__cause__
    assert type(original) is Fraud
    assert (original.type, original.details, original.non_retryable) == ("Fraud", {"score": 99}, True)


def test_application_failure_whose_subclass_does_not_call_its_constructor_is_told_by_its_class() -> None:
    class Careless(ApplicationFailure):
        def __init__(self) -> None:
            self.args = ("no more paper",)

    failure = describe_exception(Careless())

    assert (failure.type, failure.message) == ("Careless", "no more paper")
