"""The assertions of test cases: what a case expects of processes. Each raises CaseFailed that says what is there instead."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from holdfast import dmn, feel
from holdfast.core.instants import to_datetime
from holdfast.core.lifecycle import Status
from holdfast.core.times.dates import parse_date
from holdfast.core.times.zones import UTC
from holdfast.errors import FeelError
from holdfast.store.tasks import TaskState
from holdfast.testing import process_cases as cases
from holdfast.testing.process_cases import ElementsState, ElementState, ProcessState, SubscriptionState, UserTaskState
from holdfast.testing.process_instances import Instance, Instances
from holdfast.testing.process_models import CaseFailed, describe
from holdfast.testing.process_progress import ElementStanding, Evaluation

_STANDINGS: Final = {
    ElementState.ACTIVE: ElementStanding.ACTIVE,
    ElementState.COMPLETED: ElementStanding.COMPLETED,
    ElementState.TERMINATED: ElementStanding.TERMINATED,
    ElementsState.ACTIVE: ElementStanding.ACTIVE,
    ElementsState.COMPLETED: ElementStanding.COMPLETED,
    ElementsState.TERMINATED: ElementStanding.TERMINATED,
}
_TASK_STATES: Final[Mapping[UserTaskState, frozenset[TaskState]]] = {
    UserTaskState.CREATED: frozenset((TaskState.OPEN, TaskState.CLAIMED)),
    UserTaskState.COMPLETED: frozenset((TaskState.COMPLETED,)),
    UserTaskState.CANCELED: frozenset((TaskState.CANCELLED,)),
    UserTaskState.FAILED: frozenset(),
}


class Assertions:
    """Checks the assertions of one case."""

    def __init__(self, instances: Instances, decisions: Mapping[str, dmn.Result]) -> None:
        self._instances = instances
        self._decisions = decisions
        self._check: Final[Mapping[type[cases.Instruction], Callable[[Any], Awaitable[None]]]] = {
            cases.AssertProcessInstance: self._check_instance,
            cases.AssertElementInstance: self._check_element,
            cases.AssertElementInstances: self._check_elements,
            cases.AssertVariables: self._check_variables,
            cases.AssertVariable: self._check_variable,
            cases.AssertUserTask: self._check_task,
            cases.AssertMessageSubscription: self._check_subscription,
            cases.AssertDecision: self._check_decision,
        }

    async def check(self, assertion: cases.Assertion) -> None:
        """Raises CaseFailed if an assertion does not hold now."""
        await self._check[type(assertion)](assertion)

    # --- processes and elements ---

    async def _check_instance(self, expected: cases.AssertProcessInstance) -> None:
        instance = await self._instances.find_last(expected.process_instance_selector)
        found = find_state(instance)
        if expected.state not in (None, ProcessState.CREATED, found):
            raise CaseFailed(
                f"Expected process '{instance.process.id}' to be {show_state(expected.state)}, but it is "
                f"{show_state(found)}. {self._describe(instance)}"
            )
        if expected.has_active_incidents is not None and expected.has_active_incidents != bool(instance.incidents):
            wanted = "an open incident" if expected.has_active_incidents else "no open incident"
            raise CaseFailed(
                f"Expected process '{instance.process.id}' to have {wanted}, but it does not. {self._describe(instance)}"
            )

    def _describe(self, instance: Instance) -> str:
        incidents = "; ".join(f"'{one.element}': {one.message}" for one in instance.incidents.values())
        error = "" if instance.info.last_error is None else f" It failed with: {instance.info.last_error}"
        return f"{instance.describe_active()}{f' Incidents: {incidents}' if incidents else ''}{error}"

    async def _check_element(self, expected: cases.AssertElementInstance) -> None:
        instance = await self._instances.find_last(expected.process_instance_selector)
        standing = _STANDINGS[expected.state]
        found = [one for one in instance.list_elements(expected.element_selector) if one.standing is standing]
        if len(found) != expected.amount:
            raise CaseFailed(
                f"Expected the element with {describe(expected.element_selector)} to be {standing} "
                f"{show_times(expected.amount)}, but it is {show_times(len(found))}. "
                f"{describe_elements(instance, expected.element_selector)}"
            )

    async def _check_elements(self, expected: cases.AssertElementInstances) -> None:
        instance = await self._instances.find_last(expected.process_instance_selector)
        if expected.state is ElementsState.COMPLETED_IN_ORDER:
            _check_order(instance, expected.element_selectors)
            return
        for selector in expected.element_selectors:
            _check_one_of(instance, selector, expected.state)
        if expected.state is ElementsState.ACTIVE_EXACTLY:
            others = [
                one.element
                for one in instance.progress.elements
                if one.standing is ElementStanding.ACTIVE
                and not any(instance.process.matches(selector, one.element) for selector in expected.element_selectors)
            ]
            if others:
                raise CaseFailed(f"Expected no other element to be active, but these are: {', '.join(others)}.")

    # --- variables ---

    async def _find_variables(
        self, expected: cases.AssertVariables | cases.AssertVariable
    ) -> tuple[Instance, dict[str, Any], str]:
        instance = await self._instances.find_last(expected.process_instance_selector)
        if expected.element_selector is None:
            return instance, instance.progress.find_variables(None), f"process '{instance.process.id}'"
        elements = instance.list_elements(expected.element_selector)
        if not elements:
            raise CaseFailed(
                f"Expected local variables of the element with {describe(expected.element_selector)}, but it was never "
                f"entered. {instance.describe_active()}"
            )
        return instance, instance.progress.find_variables(elements[-1].key), f"element '{elements[-1].element}'"

    async def _check_variables(self, expected: cases.AssertVariables) -> None:
        _, variables, where = await self._find_variables(expected)
        missing = [name for name in (*expected.variable_names, *expected.variables) if name not in variables]
        if missing:
            raise CaseFailed(
                f"Expected {where} to have the variables {', '.join(map(repr, missing))}, but it has "
                f"{', '.join(map(repr, variables)) or 'none'}."
            )
        for name, value in expected.variables.items():
            if not is_same(variables[name], value):
                raise CaseFailed(
                    f"Expected variable '{name}' of {where} to be {show_json(value)}, but it is "
                    f"{show_json(variables[name])}."
                )

    async def _check_variable(self, expected: cases.AssertVariable) -> None:
        _, variables, where = await self._find_variables(expected)
        name = expected.variable_name
        if name not in variables:
            raise CaseFailed(
                f"Expected {where} to have the variable '{name}', but it has {', '.join(map(repr, variables)) or 'none'}."
            )
        text = expected.satisfies_expression.strip().removeprefix("=")
        try:
            holds = feel.evaluate(text, variables)
        except FeelError as error:
            raise CaseFailed(f"Expected '{text}' to be FEEL, but {error.message}") from error
        if holds is not True:
            raise CaseFailed(
                f"Expected '{text}' to hold for {where}, but '{name}' is {show_json(variables[name])}, and it gives "
                f"{show_json(feel.to_json(holds))}."
            )

    # --- user tasks, messages, decisions ---

    async def _check_task(self, expected: cases.AssertUserTask) -> None:
        task = await self._instances.find_task(expected.user_task_selector, is_open=False)
        info = task.info
        if expected.state is not None and info.state not in _TASK_STATES[expected.state]:
            raise CaseFailed(f"Expected user task '{info.name}' to be {show_state(expected.state)}, but it is {info.state}.")
        pairs: list[tuple[str, Any, Any]] = [
            ("assignee", expected.assignee, info.assignee),
            ("candidate groups", _sort(expected.candidate_groups), _sort(info.candidate_groups)),
            ("priority", expected.priority, info.priority),
            ("element id", expected.element_id, task.element),
            ("name", expected.name, info.name),
            ("due date", _read_date(expected.due_date), info.due),
            ("follow-up date", _read_date(expected.follow_up_date), info.follow_up),
        ]
        for what, wanted, found in pairs:
            if wanted is not None and wanted != found:
                raise CaseFailed(f"Expected the {what} of user task '{info.name}' to be {wanted!r}, but it is {found!r}.")

    async def _check_subscription(self, expected: cases.AssertMessageSubscription) -> None:
        instance = await self._instances.find_last(expected.process_instance_selector)
        selector = expected.message_selector
        waits = [
            one
            for one in instance.messages.values()
            if one.name == selector.message_name and selector.correlation_key in (None, one.key)
        ]
        is_waiting = any(one.is_open for one in waits)
        holds = {
            SubscriptionState.WAITING: is_waiting,
            SubscriptionState.NOT_WAITING: not is_waiting,
            SubscriptionState.CORRELATED: any(one.is_correlated for one in waits),
        }
        if not holds[expected.state]:
            known = ", ".join(f"'{one.name}' ({one.key})" for one in instance.messages.values() if one.is_open) or "none"
            raise CaseFailed(
                f"Expected the message with {describe(selector)} to be {show_state(expected.state)} in process "
                f"'{instance.process.id}', but it is not. It waits for: {known}."
            )

    async def _check_decision(self, expected: cases.AssertDecision) -> None:
        id_, _ = self._instances.models.find_decision(expected.decision_selector)
        made = await self._find_evaluation(id_)
        output, rules = made.output, made.rules
        if expected.output is not msgspec.UNSET and not is_same(output, expected.output):
            raise CaseFailed(
                f"Expected decision '{id_}' to give {show_json(expected.output)}, but it gave {show_json(output)}."
            )
        missing = set(expected.matched_rules or ()) - rules
        unwanted = set(expected.not_matched_rules or ()) & rules
        if missing or unwanted or (expected.no_matched_rules and rules):
            raise CaseFailed(
                f"Expected other rules of decision '{id_}' to match, but those that did are: "
                f"{', '.join(map(str, sorted(rules))) or 'none'}."
            )

    async def _find_evaluation(self, id_: str) -> Evaluation:
        """The last evaluation of a decision: by the case itself, else by a business rule task."""
        if id_ in self._decisions:
            result = self._decisions[id_]
            decision = next(one for one in result.trace if one.id == id_)
            rules = frozenset(rule.number for table in decision.tables for rule in table.rules)
            return Evaluation(feel.to_json(result.value), rules)
        for instance in reversed(await self._instances.list_all()):
            found = instance.progress.decisions.get(id_)
            if found is not None:
                return found
        raise CaseFailed(
            f"Expected decision '{id_}' to have been evaluated, but it was not. "
            "Use EVALUATE_DECISION, or a business rule task."
        )


def find_state(instance: Instance) -> ProcessState:
    """What an instance is: one that failed counts as terminated, as for Camunda, where processes do not fail."""
    if instance.info.status is Status.COMPLETED:
        return ProcessState.COMPLETED
    return ProcessState.TERMINATED if instance.info.status.is_closed else ProcessState.ACTIVE


def describe_elements(instance: Instance, selector: cases.ElementSelector) -> str:
    """How often the elements that a selector means were in each state, as a sentence."""
    found = [str(one.standing) for one in instance.list_elements(selector)]
    if not found:
        return f"It was never entered. {instance.describe_active()}"
    return "It is " + ", ".join(f"{one} {show_times(found.count(one))}" for one in sorted(set(found))) + "."


def _check_one_of(instance: Instance, selector: cases.ElementSelector, state: ElementsState) -> None:
    found = instance.list_elements(selector)
    if state is ElementsState.NOT_ACTIVATED:
        holds = not found
    elif state is ElementsState.NOT_ACTIVE:
        holds = all(one.standing is not ElementStanding.ACTIVE for one in found)
    else:
        wanted = _STANDINGS.get(state, ElementStanding.ACTIVE)
        holds = any(one.standing is wanted for one in found)
    if not holds:
        raise CaseFailed(
            f"Expected the element with {describe(selector)} to be {show_state(state)}, but it is not. "
            f"{describe_elements(instance, selector)}"
        )


def _check_order(instance: Instance, selectors: tuple[cases.ElementSelector, ...]) -> None:
    """Completed elements that no selector means do not matter."""
    completed = sorted(
        (one for one in instance.progress.elements if one.standing is ElementStanding.COMPLETED), key=lambda one: one.left
    )
    process = instance.process
    found = [one.element for one in completed if any(process.matches(selector, one.element) for selector in selectors)]
    is_right = len(found) == len(selectors) and all(
        process.matches(selector, element) for selector, element in zip(selectors, found, strict=True)
    )
    if not is_right:
        wanted = ", ".join(describe(one) for one in selectors)
        raise CaseFailed(f"Expected these elements to be completed in order: {wanted}. Completed were: {', '.join(found)}.")


def is_same(found: Any, expected: Any) -> bool:
    """Whether two JSON values are the same; numbers by their value, but True is not 1."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(is_same(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    return bool(found == expected)


def show_state(state: str | None) -> str:
    """A state as a sentence has it: `completed` for IS_COMPLETED."""
    return str(state).removeprefix("IS_").lower().replace("_", " ")


def show_times(count: int) -> str:
    """How often, in words: `once`, `3 times`, `not at all`."""
    return {0: "not at all", 1: "once"}.get(count, f"{count} times")


def show_json(value: Any) -> str:
    """A value as JSON text, shortened if it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 300 else f"{text[:300]}…"


def _sort(groups: tuple[str, ...] | None) -> list[str] | None:
    return None if groups is None else sorted(groups)


def _read_date(text: str | None) -> Any:
    return None if text is None else to_datetime(parse_date(text, UTC))
