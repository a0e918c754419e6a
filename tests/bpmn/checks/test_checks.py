"""P9: what cannot be run is refused, with every problem at once; what can be is not."""

from __future__ import annotations

import pytest

from holdfast.bpmn.checks import NOT_YET
from tests.bpmn.checks.model_files import (
    END,
    START,
    find_codes,
    find_errors,
    find_notices,
    flow,
    make_file,
    make_path,
    make_process,
)

MESSAGE = '<bpmn:message id="m" name="paid"/>'
SIGNAL = '<bpmn:signal id="s" name="stop"/>'
ERROR = '<bpmn:error id="e" errorCode="E1"/>'
ESCALATION = '<bpmn:escalation id="c" escalationCode="C1"/>'
DECLARED = MESSAGE + SIGNAL + ERROR + ESCALATION
MESSAGE_EVENT = '<bpmn:messageEventDefinition messageRef="m"/>'
TIMER_EVENT = "<bpmn:timerEventDefinition><bpmn:timeDuration>PT5M</bpmn:timeDuration></bpmn:timerEventDefinition>"
SIGNAL_EVENT = '<bpmn:signalEventDefinition signalRef="s"/>'
ERROR_EVENT = '<bpmn:errorEventDefinition errorRef="e"/>'
ESCALATION_EVENT = '<bpmn:escalationEventDefinition escalationRef="c"/>'
CONDITIONAL_EVENT = "<bpmn:conditionalEventDefinition><bpmn:condition>=a</bpmn:condition></bpmn:conditionalEventDefinition>"
TASK = '<bpmn:task id="it"/>'


def catch(definition: str) -> str:
    return f'<bpmn:intermediateCatchEvent id="it">{definition}</bpmn:intermediateCatchEvent>'


def throw(definition: str) -> str:
    return f'<bpmn:intermediateThrowEvent id="it">{definition}</bpmn:intermediateThrowEvent>'


def boundary(definition: str, attributes: str = "") -> str:
    event = f'<bpmn:boundaryEvent id="b" attachedToRef="it" {attributes}>{definition}</bpmn:boundaryEvent>'
    return event + '<bpmn:endEvent id="late"/>' + flow("b", "late")


def sub_process(content: str, attributes: str = "") -> str:
    return f'<bpmn:subProcess id="it" {attributes}>{content}</bpmn:subProcess>'


INSIDE = '<bpmn:startEvent id="in"/><bpmn:endEvent id="out"/>' + flow("in", "out")


# --- what can be run ---


@pytest.mark.parametrize(
    "node",
    [
        TASK,
        '<bpmn:manualTask id="it"/>',
        '<bpmn:userTask id="it"/>',
        '<bpmn:receiveTask id="it" messageRef="m"/>',
        '<bpmn:sendTask id="it" messageRef="m"/>',
        '<bpmn:serviceTask id="it" implementation="charge"/>',
        '<bpmn:scriptTask id="it"><bpmn:script>={total: 5}</bpmn:script></bpmn:scriptTask>',
        '<bpmn:callActivity id="it" calledElement="other"/>',
        '<bpmn:exclusiveGateway id="it"/>',
        '<bpmn:parallelGateway id="it"/>',
        sub_process(INSIDE),
        catch(MESSAGE_EVENT),
        catch(TIMER_EVENT),
        catch(SIGNAL_EVENT),
        throw(""),
        throw(MESSAGE_EVENT),
        throw(SIGNAL_EVENT),
        throw(ESCALATION_EVENT),
        TASK + boundary(MESSAGE_EVENT),
        TASK + boundary(TIMER_EVENT, 'cancelActivity="false"'),
        TASK + boundary(SIGNAL_EVENT, 'cancelActivity="false"'),
        TASK + boundary(ERROR_EVENT),
        TASK + boundary("<bpmn:errorEventDefinition/>"),
        TASK + boundary(ESCALATION_EVENT, 'cancelActivity="false"'),
        (
            '<bpmn:task id="it"><bpmn:multiInstanceLoopCharacteristics><bpmn:loopCardinality>3</bpmn:loopCardinality>'
            "</bpmn:multiInstanceLoopCharacteristics></bpmn:task>"
        ),
    ],
)
def test_P9_what_can_be_run_has_no_problem(node: str) -> None:
    assert find_errors(make_path(node, beside=DECLARED)) == []


@pytest.mark.parametrize("definition", ["", MESSAGE_EVENT, TIMER_EVENT, SIGNAL_EVENT])
def test_P9_processes_start_by_nothing_messages_timers_and_signals(definition: str) -> None:
    start = f'<bpmn:startEvent id="start">{definition}</bpmn:startEvent>'

    assert find_errors(make_process(start + END + flow("start", "end"), beside=DECLARED)) == []


@pytest.mark.parametrize(
    "definition",
    ["", MESSAGE_EVENT, SIGNAL_EVENT, ERROR_EVENT, ESCALATION_EVENT, "<bpmn:terminateEventDefinition/>"],
)
def test_P9_end_events_of_all_kinds_are_accepted(definition: str) -> None:
    end = f'<bpmn:endEvent id="end">{definition}</bpmn:endEvent>'

    assert find_errors(make_process(START + end + flow("start", "end"), beside=DECLARED)) == []


@pytest.mark.parametrize("definition", [MESSAGE_EVENT, TIMER_EVENT, SIGNAL_EVENT, ERROR_EVENT, ESCALATION_EVENT])
def test_P9_event_sub_processes_of_all_kinds_are_accepted(definition: str) -> None:
    inner = f'<bpmn:startEvent id="in">{definition}</bpmn:startEvent><bpmn:endEvent id="out"/>' + flow("in", "out")
    handler = f'<bpmn:subProcess id="handler" triggeredByEvent="true">{inner}</bpmn:subProcess>'

    assert find_errors(make_path(TASK, beside=DECLARED, more=handler)) == []


def test_P9_links_of_one_name_are_accepted() -> None:
    link = '<bpmn:linkEventDefinition name="L"/>'
    content = (
        f'{START}{END}<bpmn:intermediateThrowEvent id="there">{link}</bpmn:intermediateThrowEvent>'
        f'<bpmn:intermediateCatchEvent id="here">{link}</bpmn:intermediateCatchEvent>'
    )

    assert find_errors(make_process(content + flow("start", "there") + flow("here", "end"))) == []


# --- what comes later ---


@pytest.mark.parametrize(
    "node",
    [
        '<bpmn:inclusiveGateway id="it"/>',
        '<bpmn:complexGateway id="it"/>',
        f'<bpmn:transaction id="it">{INSIDE}</bpmn:transaction>',
        '<bpmn:adHocSubProcess id="it"><bpmn:task id="any"/></bpmn:adHocSubProcess>',
        '<bpmn:receiveTask id="it" messageRef="m" instantiate="true"/>',
        '<bpmn:task id="it" startQuantity="2"/>',
        '<bpmn:task id="it" completionQuantity="2"/>',
        '<bpmn:task id="it" isForCompensation="true"/>',
        '<bpmn:task id="it"><bpmn:standardLoopCharacteristics/></bpmn:task>',
        (
            '<bpmn:task id="it"><bpmn:multiInstanceLoopCharacteristics behavior="One"><bpmn:loopCardinality>3'
            "</bpmn:loopCardinality></bpmn:multiInstanceLoopCharacteristics></bpmn:task>"
        ),
        catch(CONDITIONAL_EVENT),
        catch(MESSAGE_EVENT + TIMER_EVENT),
        throw("<bpmn:compensateEventDefinition/>"),
        throw(MESSAGE_EVENT + SIGNAL_EVENT),
        (
            '<bpmn:userTask id="it"><bpmn:extensionElements><zeebe:executionListeners><zeebe:executionListener '
            'eventType="start" type="log"/></zeebe:executionListeners></bpmn:extensionElements></bpmn:userTask>'
        ),
        (
            '<bpmn:userTask id="it"><bpmn:extensionElements><zeebe:taskListeners><zeebe:taskListener eventType="completing" '
            'type="log"/></zeebe:taskListeners></bpmn:extensionElements></bpmn:userTask>'
        ),
    ],
)
def test_P9_what_comes_later_is_refused_with_that_reason(node: str) -> None:
    assert ("it", NOT_YET) in find_codes(make_path(node, beside=DECLARED))


@pytest.mark.parametrize(
    "definition", ["<bpmn:compensateEventDefinition/>", "<bpmn:cancelEventDefinition/>", CONDITIONAL_EVENT]
)
def test_P9_boundary_events_that_come_later_are_refused(definition: str) -> None:
    assert ("b", NOT_YET) in find_codes(make_path(TASK + boundary(definition)))


def test_P9_an_event_based_gateway_that_starts_a_process_is_refused() -> None:
    events = "".join(
        f'<bpmn:intermediateCatchEvent id="{name}">{TIMER_EVENT}</bpmn:intermediateCatchEvent>' for name in ("a", "b")
    )
    gateway = '<bpmn:eventBasedGateway id="it" instantiate="true"/>'
    flows = "".join(flow(*ends) for ends in (("it", "a"), ("it", "b"), ("a", "end"), ("b", "end")))

    assert ("it", NOT_YET) in find_codes(make_process(START + gateway + events + END + flow("start", "it") + flows))


# --- events ---


@pytest.mark.parametrize(
    ("node", "code"),
    [
        (catch(""), "missing-event-definition"),
        (catch(ERROR_EVENT), "misplaced-event"),
        (catch("<bpmn:terminateEventDefinition/>"), "misplaced-event"),
        (throw(TIMER_EVENT), "misplaced-event"),
        (throw(ERROR_EVENT), "misplaced-event"),
        (catch('<bpmn:messageEventDefinition messageRef="none"/>'), "unknown-reference"),
        (catch("<bpmn:messageEventDefinition/>"), "missing-reference"),
        (catch('<bpmn:signalEventDefinition signalRef="none"/>'), "unknown-reference"),
        (catch("<bpmn:signalEventDefinition/>"), "missing-reference"),
        (throw("<bpmn:escalationEventDefinition/>"), "missing-code"),
        (catch("<bpmn:timerEventDefinition/>"), "bad-timer"),
        ('<bpmn:receiveTask id="it"/>', "missing-reference"),
        ('<bpmn:receiveTask id="it" messageRef="none"/>', "unknown-reference"),
    ],
)
def test_P9_events_that_cannot_be_caught_or_thrown_are_refused(node: str, code: str) -> None:
    assert ("it", code) in find_codes(make_path(node, beside=DECLARED))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("timeDuration", "5 minutes"),
        ("timeDuration", "P"),
        ("timeDate", "tomorrow"),
        ("timeDate", "2030-02-30T00:00:00Z"),
        ("timeCycle", "R0/PT1M"),
        ("timeCycle", "PT1M"),
        ("timeCycle", "61 * * * *"),
        ("timeDuration", "=1 +"),
    ],
)
def test_P9_timers_whose_text_cannot_be_read_are_refused(kind: str, text: str) -> None:
    timer = f"<bpmn:timerEventDefinition><bpmn:{kind}>{text}</bpmn:{kind}></bpmn:timerEventDefinition>"

    assert [element for element, _ in find_codes(make_path(catch(timer)))] == ["it"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("timeDuration", "PT10M"),
        ("timeDuration", "=duration"),
        ("timeDate", "2030-01-31T09:00:00Z"),
        ("timeDate", "2030-01-31T09:00:00+01:00"),
        ("timeCycle", "R3/PT10M"),
        ("timeCycle", "R/PT1H"),
        ("timeCycle", "R/2026-01-01T00:00:00Z/P1D"),
        ("timeCycle", "0 9 * * MON-FRI"),
        ("timeCycle", "0 0/5 * * * ?"),
        ("timeCycle", "0 15 10 ? * MON-FRI *"),
        ("timeCycle", "R-1/PT1H"),
        ("timeDate", "2030-01-31T09:00:00+01:00[Europe/Berlin]"),
    ],
)
def test_T1_timers_of_all_forms_are_accepted(kind: str, text: str) -> None:
    timer = f"<bpmn:timerEventDefinition><bpmn:{kind}>{text}</bpmn:{kind}></bpmn:timerEventDefinition>"

    assert find_errors(make_path(catch(timer))) == []


def test_P9_a_start_timer_that_needs_variables_is_refused() -> None:
    timer = "<bpmn:timerEventDefinition><bpmn:timeDuration>=pause</bpmn:timeDuration></bpmn:timerEventDefinition>"
    start = f'<bpmn:startEvent id="start">{timer}</bpmn:startEvent>'

    assert find_codes(make_process(start + END + flow("start", "end"))) == [("start", "no-variables")]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (boundary(""), "missing-event-definition"),
        (boundary(ERROR_EVENT, 'cancelActivity="false"'), "misplaced-event"),
        (boundary("<bpmn:terminateEventDefinition/>"), "misplaced-event"),
        (boundary(TIMER_EVENT).replace('attachedToRef="it"', ""), "bad-host"),
        (boundary(TIMER_EVENT).replace('attachedToRef="it"', 'attachedToRef="end"'), "bad-host"),
        (f'<bpmn:boundaryEvent id="b" attachedToRef="it">{TIMER_EVENT}</bpmn:boundaryEvent>', "not-connected"),
    ],
)
def test_P9_boundary_events_that_make_no_sense_are_refused(event: str, code: str) -> None:
    assert ("b", code) in find_codes(make_path(TASK + event, beside=DECLARED, vendor=""))


def test_P9_two_boundary_events_for_one_error_code_are_refused() -> None:
    second = boundary(ERROR_EVENT).replace('id="b"', 'id="c2"').replace("b_late", "c2_late").replace('"b"', '"c2"')

    found = find_codes(make_path(TASK + boundary(ERROR_EVENT) + second.replace("late", "later"), beside=DECLARED))

    assert found == [("c2", "duplicate-catch")]


@pytest.mark.parametrize(
    ("start", "code"),
    [("", "missing-event-definition"), ("<bpmn:linkEventDefinition name='x'/>", "misplaced-event")],
)
def test_P9_event_sub_processes_without_a_proper_start_are_refused(start: str, code: str) -> None:
    inner = f'<bpmn:startEvent id="in">{start}</bpmn:startEvent><bpmn:endEvent id="out"/>' + flow("in", "out")
    handler = f'<bpmn:subProcess id="handler" triggeredByEvent="true">{inner}</bpmn:subProcess>'

    assert ("in", code) in find_codes(make_path(TASK, more=handler))


def test_P9_event_sub_processes_have_one_start_and_no_flows() -> None:
    inner = "".join(f'<bpmn:startEvent id="in{n}">{SIGNAL_EVENT}</bpmn:startEvent>' for n in (1, 2))
    handler = f'<bpmn:subProcess id="handler" triggeredByEvent="true">{inner}<bpmn:endEvent id="out"/>'
    handler += flow("in1", "out") + flow("in2", "out") + "</bpmn:subProcess>"

    found = find_codes(make_path(TASK, beside=SIGNAL, more=handler + flow("it", "handler")))

    assert found == [("in2", "several-starts"), ("it_handler", "bad-flow")]


def test_P9_links_without_their_other_end_are_refused() -> None:
    link = '<bpmn:linkEventDefinition name="L"/>'
    there = f'<bpmn:intermediateThrowEvent id="there">{link}</bpmn:intermediateThrowEvent>'

    assert find_codes(make_process(START + there + flow("start", "there"))) == [("there", "bad-link")]


# --- flows and gateways ---


def test_P9_flows_that_lead_nowhere_are_refused() -> None:
    assert ("it_gone", "bad-flow") in find_codes(make_path(TASK, more=flow("it", "gone")))


def test_P9_flows_across_the_border_of_a_sub_process_are_refused() -> None:
    (problem,) = find_errors(make_path(sub_process(INSIDE), more=flow("start", "out")))

    assert problem.element == "start_out"
    assert "in the sub-process 'it'" in problem.message


@pytest.mark.parametrize("ends", [("end", "it"), ("it", "start")])
def test_P9_flows_out_of_ends_and_into_starts_are_refused(ends: tuple[str, str]) -> None:
    assert (f"{ends[0]}_{ends[1]}", "bad-flow") in find_codes(make_path(TASK, more=flow(*ends)))


def test_P9_an_element_that_nothing_leads_to_is_refused() -> None:
    lost = '<bpmn:task id="lost"/>' + flow("lost", "end")

    assert find_codes(make_path(TASK, more=lost, vendor="")) == [("lost", "not-connected")]


def test_P9_an_element_that_nothing_leaves_ends_its_path() -> None:
    data = make_process(START + TASK + flow("start", "it"))

    assert find_errors(data) == []
    assert find_notices(data) == [("it", "implicit-end")]


def test_P9_a_process_without_start_and_end_begins_with_what_nothing_leads_to() -> None:
    data = make_process(TASK)

    assert find_errors(data) == []
    assert ("order", "implicit-start") in find_notices(data)


@pytest.mark.parametrize("content", ["", TASK + END + flow("it", "end"), catch(TIMER_EVENT)])
def test_P9_a_process_that_cannot_begin_is_refused(content: str) -> None:
    assert find_codes(make_process(content)) != []


def test_P9_two_start_events_without_a_trigger_are_refused() -> None:
    data = make_path(TASK, more='<bpmn:startEvent id="second"/>' + flow("second", "it"))

    assert find_codes(data) == [("second", "several-starts")]


def test_P9_two_start_events_for_one_message_are_refused() -> None:
    starts = "".join(f'<bpmn:startEvent id="{name}">{MESSAGE_EVENT}</bpmn:startEvent>' for name in ("s1", "s2"))

    found = find_codes(make_process(starts + END + flow("s1", "end") + flow("s2", "end"), beside=MESSAGE))

    assert found == [("s2", "duplicate-start")]


def _choose(default: str, *conditions: str) -> bytes:
    ends = "".join(f'<bpmn:endEvent id="e{n}"/>' + flow("it", f"e{n}", text) for n, text in enumerate(conditions))
    return make_process(f'{START}<bpmn:exclusiveGateway id="it" {default}/>{ends}' + flow("start", "it"))


def test_P8_an_exclusive_gateway_needs_a_condition_on_each_flow_but_the_default() -> None:
    assert find_codes(_choose("", "=a", "")) == [("it_e1", "missing-condition")]
    assert find_codes(_choose('default="it_e1"', "=a", "")) == []
    assert find_codes(_choose('default="other"', "=a", "=b")) == [("it", "bad-default")]


def test_P8_the_condition_of_a_default_flow_is_told_and_ignored() -> None:
    assert find_notices(_choose('default="it_e1"', "=a", "=b")) == [("it_e1", "condition-of-default")]


def test_P8_conditions_out_of_events_are_refused_and_out_of_parallel_gateways_told() -> None:
    parallel = START + '<bpmn:parallelGateway id="it"/>' + END + flow("start", "it") + flow("it", "end", "=a")

    assert find_codes(make_process(START + END + flow("start", "end", "=a"))) == [("start_end", "misplaced-condition")]
    assert find_codes(make_process(parallel)) == []
    assert find_notices(make_process(parallel)) == [("it_end", "misplaced-condition")]


def test_P8_an_activity_with_one_conditional_flow_needs_a_second_one() -> None:
    one = START + TASK + END + flow("start", "it") + flow("it", "end", "=a")
    two = one + '<bpmn:endEvent id="other"/>' + flow("it", "other")

    assert find_codes(make_process(one)) == [("it_end", "lonely-condition")]
    assert find_codes(make_process(two)) == []


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (f'<bpmn:intermediateCatchEvent id="b">{MESSAGE_EVENT}</bpmn:intermediateCatchEvent>', None),
        ('<bpmn:receiveTask id="b" messageRef="m"/>', None),
        ('<bpmn:task id="b"/>', "bad-gateway"),
        ('<bpmn:intermediateThrowEvent id="b"/>', "bad-gateway"),
    ],
)
def test_P4_event_based_gateways_lead_to_events_that_can_be_awaited(target: str, code: str | None) -> None:
    first = f'<bpmn:intermediateCatchEvent id="a">{TIMER_EVENT}</bpmn:intermediateCatchEvent>'
    flows = "".join(flow(*ends) for ends in (("start", "it"), ("it", "a"), ("it", "b"), ("a", "end"), ("b", "end")))
    data = make_process(START + '<bpmn:eventBasedGateway id="it"/>' + first + target + END + flows, beside=MESSAGE)

    assert find_codes(data) == ([] if code is None else [("b", code)])


def test_P9_a_gateway_whose_direction_contradicts_its_flows_is_told() -> None:
    node = '<bpmn:parallelGateway id="it" gatewayDirection="Diverging"/>'
    more = '<bpmn:task id="back"/>' + flow("it", "back") + flow("back", "it")

    assert find_codes(make_path(node, more=more)) == []
    assert find_notices(make_path(node, more=more)) == [("it", "gateway-direction")]


# --- work ---


@pytest.mark.parametrize(
    "node",
    [
        '<bpmn:serviceTask id="it"/>',
        '<bpmn:serviceTask id="it" implementation="##WebService"/>',
        '<bpmn:sendTask id="it"/>',
        '<bpmn:scriptTask id="it"/>',
        '<bpmn:businessRuleTask id="it"/>',
        '<bpmn:callActivity id="it"/>',
    ],
)
def test_P9_a_task_that_nobody_does_is_refused_with_the_remedy(node: str) -> None:
    (problem,) = find_errors(make_path(node))

    assert (problem.element, problem.code) == ("it", "missing-work")
    assert problem.remedy


@pytest.mark.parametrize("script", ["total = 5", "order.total = a + 1", "  x=1"])
def test_P9_a_script_that_assigns_is_no_feel(script: str) -> None:
    node = f'<bpmn:scriptTask id="it"><bpmn:script>{script}</bpmn:script></bpmn:scriptTask>'

    assert find_codes(make_path(node)) == [("it", "script-language")]


def test_P9_prose_in_place_of_an_expression_is_refused() -> None:
    node = '<bpmn:scriptTask id="it"><bpmn:script>do something useful</bpmn:script></bpmn:scriptTask>'

    assert find_codes(make_path(node)) == [("it", "expression")]


@pytest.mark.parametrize("language", ["groovy", "javascript", "python"])
def test_P9_scripts_in_other_languages_are_refused(language: str) -> None:
    node = f'<bpmn:scriptTask id="it" scriptFormat="{language}"><bpmn:script>a</bpmn:script></bpmn:scriptTask>'

    assert find_codes(make_path(node)) == [("it", "script-language")]


@pytest.mark.parametrize(
    "loop",
    [
        "",
        "<bpmn:extensionElements><zeebe:loopCharacteristics inputCollection='items'/></bpmn:extensionElements>",
        (
            "<bpmn:extensionElements><zeebe:loopCharacteristics inputCollection='=a' outputCollection='b'/>"
            "</bpmn:extensionElements>"
        ),
        "<bpmn:loopCardinality>=1 +</bpmn:loopCardinality>",
    ],
)
def test_P6_multi_instance_that_does_not_say_what_it_repeats_is_refused(loop: str) -> None:
    inner = f"<bpmn:multiInstanceLoopCharacteristics>{loop}</bpmn:multiInstanceLoopCharacteristics>"

    assert [element for element, _ in find_codes(make_path(f'<bpmn:task id="it">{inner}</bpmn:task>'))] == ["it"]


def test_P9_a_call_of_a_process_that_is_not_executable_is_refused() -> None:
    other = '<bpmn:process id="other" isExecutable="false"/>'

    found = find_codes(make_path('<bpmn:callActivity id="it" calledElement="other"/>', beside=other))

    assert found == [("it", "not-executable")]


def test_P9_a_global_task_is_called_as_a_process() -> None:
    task = '<bpmn:globalScriptTask id="other"><bpmn:script>={a: 1}</bpmn:script></bpmn:globalScriptTask>'

    assert find_errors(make_path('<bpmn:callActivity id="it" calledElement="other"/>', beside=task)) == []


# --- expressions ---


@pytest.mark.parametrize(
    ("extension", "code"),
    [
        ('<zeebe:ioMapping><zeebe:input source="=1 +" target="a"/></zeebe:ioMapping>', "expression"),
        ('<zeebe:ioMapping><zeebe:output source="=nobody(1)" target="a"/></zeebe:ioMapping>', "expression"),
        ('<zeebe:ioMapping><zeebe:input source="=1" target="a..b"/></zeebe:ioMapping>', "bad-mapping"),
        ('<zeebe:taskDefinition type="=a b c +"/>', "expression"),
        ('<zeebe:taskDefinition type="a" retries="many"/>', "bad-retries"),
        ('<zeebe:taskDefinition type=""/>', "missing-name"),
    ],
)
def test_P9_expressions_and_constants_are_checked_at_deployment(extension: str, code: str) -> None:
    job = "" if "taskDefinition" in extension else '<zeebe:taskDefinition type="a"/>'
    node = f'<bpmn:serviceTask id="it"><bpmn:extensionElements>{job}{extension}</bpmn:extensionElements></bpmn:serviceTask>'

    assert find_codes(make_path(node)) == [("it", code)]


def test_P9_a_problem_has_the_line_of_its_expression() -> None:
    node = (
        '<bpmn:serviceTask id="it">\n<bpmn:extensionElements>\n<zeebe:taskDefinition type="a"/>\n<zeebe:ioMapping>\n'
        '<zeebe:input source="=1 +" target="a"/>\n</zeebe:ioMapping></bpmn:extensionElements></bpmn:serviceTask>'
    )
    data = make_path(node)
    (problem,) = find_errors(data)

    assert problem.file == "order.bpmn"
    assert b"zeebe:input" in data.splitlines()[problem.line - 1]
    assert problem.message.startswith("Expected ")
    assert ", but " in problem.message
    assert str(problem).startswith(f"order.bpmn:{problem.line} (it): Expected ")


def test_M4_a_correlation_key_has_to_be_an_expression() -> None:
    message = (
        '<bpmn:message id="m" name="paid"><bpmn:extensionElements><zeebe:subscription correlationKey="{}"/>'
        "</bpmn:extensionElements></bpmn:message>"
    )

    assert find_codes(make_path(catch(MESSAGE_EVENT), beside=message.format("order"))) == [("m", "constant-key")]
    assert find_codes(make_path(catch(MESSAGE_EVENT), beside=message.format("=order"))) == []


# --- the whole ---


def test_P9_every_problem_is_told_at_once() -> None:
    content = START + '<bpmn:serviceTask id="a"/><bpmn:inclusiveGateway id="b"/>' + catch("<bpmn:timerEventDefinition/>")
    content += flow("start", "a") + flow("a", "b", "=1 +") + flow("b", "it") + flow("it", "nowhere")

    assert sorted(find_codes(make_process(content))) == [
        ("a", "missing-work"),
        ("a_b", "expression"),
        ("a_b", "lonely-condition"),
        ("b", NOT_YET),
        ("it", "bad-timer"),
        ("it_nowhere", "bad-flow"),
    ]


def test_P9_a_file_without_an_executable_process_is_refused() -> None:
    drawing = f'<bpmn:process id="p" isExecutable="false">{START}</bpmn:process>'

    assert find_codes(make_file(drawing)) == [("p", "not-executable")]
    assert find_codes(make_file("")) == [("", "no-process")]


def test_P9_the_only_process_is_run_if_it_says_nothing_and_two_are_not() -> None:
    one = f'<bpmn:process id="p">{START}{END}{flow("start", "end")}</bpmn:process>'
    two = one + '<bpmn:process id="q"/>'

    assert find_codes(make_file(one)) == []
    assert find_notices(make_file(one)) == [("p", "executable")]
    assert find_codes(make_file(two)) == [("p", "not-executable")]


def test_P9_mistakes_in_a_process_that_is_never_run_are_only_told() -> None:
    drawing = (
        '<bpmn:process id="q" isExecutable="false"><bpmn:task id="t"/><bpmn:sequenceFlow id="f" sourceRef="t"/>'
        '<bpmn:scriptTask id="x" scriptFormat="groovy"><bpmn:script>a</bpmn:script></bpmn:scriptTask></bpmn:process>'
    )

    assert find_codes(make_path(TASK, beside=drawing)) == []


def test_P9_pools_lanes_data_and_annotations_change_nothing() -> None:
    beside = (
        '<bpmn:collaboration id="c"><bpmn:participant id="pool" processRef="order"/><bpmn:participant id="black"/>'
        '<bpmn:messageFlow id="mf" sourceRef="black" targetRef="start"/></bpmn:collaboration>'
        '<bpmn:category id="cat"><bpmn:categoryValue id="cv" value="v"/></bpmn:category>'
        '<bpmn:itemDefinition id="item" structureRef="xsd:string"/><bpmn:resource id="r" name="r"/>'
    )
    more = (
        '<bpmn:laneSet id="ls"><bpmn:lane id="l"><bpmn:flowNodeRef>it</bpmn:flowNodeRef></bpmn:lane></bpmn:laneSet>'
        '<bpmn:dataObject id="do"/><bpmn:dataObjectReference id="dr" dataObjectRef="do"/>'
        '<bpmn:dataStoreReference id="ds"/><bpmn:group id="g" categoryValueRef="cv"/>'
        '<bpmn:textAnnotation id="ta"><bpmn:text>Look</bpmn:text></bpmn:textAnnotation>'
        '<bpmn:association id="as" sourceRef="it" targetRef="ta"/>'
        '<bpmn:property id="pr" itemSubjectRef="xsd:string"/>'
    )

    assert find_errors(make_path(TASK, beside=beside, more=more)) == []
