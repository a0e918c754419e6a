"""What the extensions of Camunda 8 and Camunda 7 mean here."""

from __future__ import annotations

import pytest

from holdfast import feel
from holdfast.bpmn import model
from holdfast.bpmn.model import Expression
from tests.bpmn.checks.model_files import (
    CAMUNDA,
    END,
    START,
    find_codes,
    find_errors,
    find_notices,
    flow,
    make_file,
    make_path,
    make_process,
    read_model,
    read_node,
)


def zeebe(kind: str, extensions: str, attributes: str = "", content: str = "") -> bytes:
    return make_path(f'<bpmn:{kind} id="it" {attributes}>{extend(extensions)}{content}</bpmn:{kind}>')


def camunda(kind: str, attributes: str = "", content: str = "") -> bytes:
    return make_path(f'<bpmn:{kind} id="it" {attributes}>{content}</bpmn:{kind}>', vendor=CAMUNDA)


def extend(content: str) -> str:
    return f"<bpmn:extensionElements>{content}</bpmn:extensionElements>"


def texts(expression: Expression | None) -> tuple[str, bool]:
    assert expression is not None
    return expression.text, expression.is_static


# --- Camunda 8 ---


def test_P9_a_task_definition_is_a_job_with_headers_and_retries() -> None:
    headers = '<zeebe:taskHeaders><zeebe:header key="url" value="x"/></zeebe:taskHeaders>'
    node = read_node(zeebe("serviceTask", f'<zeebe:taskDefinition type="charge" retries="5"/>{headers}'))

    assert isinstance(node, model.ServiceTask)
    assert node.job is not None
    assert texts(node.job.type) == ("charge", True)
    assert texts(node.job.retries) == ("5", True)
    assert node.job.headers == {"url": "x"}


def test_P9_a_job_type_may_be_an_expression() -> None:
    node = read_node(zeebe("serviceTask", '<zeebe:taskDefinition type="=kind + &quot;-job&quot;"/>'))

    assert isinstance(node, model.ServiceTask)
    assert node.job is not None
    assert texts(node.job.type) == ('kind + "-job"', False)


def test_P5_input_and_output_mappings_keep_their_order() -> None:
    mapping = (
        '<zeebe:ioMapping><zeebe:input source="=a" target="x"/><zeebe:input source="text" target="y.z"/>'
        '<zeebe:output source="=r" target="b"/></zeebe:ioMapping>'
    )
    node = read_node(zeebe("serviceTask", f'<zeebe:taskDefinition type="t"/>{mapping}'))

    assert node.mappings is not None
    assert [(one.target, *texts(one.source)) for one in node.mappings.inputs] == [("x", "a", False), ("y.z", "text", True)]
    assert [(one.target, *texts(one.source)) for one in node.mappings.outputs] == [("b", "r", False)]


def test_M4_a_subscription_gives_the_correlation_key() -> None:
    message = (
        '<bpmn:message id="m" name="paid"><bpmn:extensionElements><zeebe:subscription correlationKey="=order.id"/>'
        "</bpmn:extensionElements></bpmn:message>"
    )
    definitions = read_model(make_path('<bpmn:receiveTask id="it" messageRef="m"/>', beside=message))

    assert texts(definitions.messages["m"].correlation_key) == ("order.id", False)


def test_P11_a_called_element_has_a_binding() -> None:
    called = (
        '<zeebe:calledElement processId="pay" bindingType="versionTag" versionTag="v2" propagateAllChildVariables="false"/>'
    )
    node = read_node(zeebe("callActivity", called))

    assert isinstance(node, model.CallActivity)
    assert node.called is not None
    assert texts(node.called.process) == ("pay", True)
    assert (node.called.binding, node.called.version_tag) == (model.Binding.VERSION_TAG, "v2")
    assert not node.called.propagates_all_child_variables
    assert node.called.propagates_all_parent_variables


def test_P9_a_called_decision_is_read() -> None:
    node = read_node(zeebe("businessRuleTask", '<zeebe:calledDecision decisionId="rate" resultVariable="fee"/>'))

    assert isinstance(node, model.BusinessRuleTask)
    assert node.decision is not None
    assert texts(node.decision.decision) == ("rate", True)
    assert node.decision.result_variable == "fee"


def test_H1_a_user_task_has_its_people_dates_priority_and_form() -> None:
    node = read_node(
        zeebe(
            "userTask",
            '<zeebe:userTask/><zeebe:assignmentDefinition assignee="=boss" candidateGroups="a, b" candidateUsers="u"/>'
            '<zeebe:taskSchedule dueDate="=now()" followUpDate="2030-01-01T00:00:00Z"/>'
            '<zeebe:priorityDefinition priority="80"/><zeebe:formDefinition formId="review"/>',
        )
    )

    assert isinstance(node, model.UserTask)
    assert texts(node.assignment.assignee) == ("boss", False)
    assert texts(node.assignment.candidate_groups) == ("a, b", True)
    assert texts(node.assignment.due_date) == ("now()", False)
    assert texts(node.assignment.priority) == ("80", True)
    assert node.form == model.FormDefinition(form_id="review")
    assert node.job is None


def test_P9_a_script_is_feel() -> None:
    node = read_node(zeebe("scriptTask", '<zeebe:script expression="=a + 1" resultVariable="b"/>'))

    assert isinstance(node, model.ScriptTask)
    assert node.script is not None
    assert (node.script.expression.text, node.script.result_variable) == ("a + 1", "b")


def test_P6_multi_instance_of_camunda_8_is_read() -> None:
    inner = (
        '<zeebe:loopCharacteristics inputCollection="=items" inputElement="item" outputCollection="results" '
        'outputElement="=result"/>'
    )
    loop = (
        f'<bpmn:multiInstanceLoopCharacteristics isSequential="true">{extend(inner)}'
        "<bpmn:completionCondition>=numberOfCompletedInstances &gt; 2</bpmn:completionCondition>"
        "</bpmn:multiInstanceLoopCharacteristics>"
    )
    node = read_node(zeebe("serviceTask", '<zeebe:taskDefinition type="t"/>', content=loop))

    assert isinstance(node, model.ServiceTask)
    assert isinstance(node.loop, model.Loop)
    assert node.loop.is_sequential
    assert texts(node.loop.input_collection) == ("items", False)
    assert (node.loop.input_element, node.loop.output_collection) == ("item", "results")
    assert texts(node.loop.output_element) == ("result", False)
    assert texts(node.loop.completion_condition) == ("numberOfCompletedInstances > 2", False)


def test_P11_version_tags_and_properties_are_read() -> None:
    extensions = '<zeebe:versionTag value="v1"/><zeebe:properties><zeebe:property name="a" value="b"/></zeebe:properties>'
    data = make_process(extend(extensions) + START + END + flow("start", "end"))
    process = read_model(data).processes[0]

    assert (process.version_tag, process.properties) == ("v1", {"a": "b"})


def test_P3_an_error_code_that_is_an_expression_is_read_and_refused() -> None:
    error = '<bpmn:error id="e" errorCode="=code"/>'
    thrown = '<bpmn:endEvent id="end"><bpmn:errorEventDefinition errorRef="e"/></bpmn:endEvent>'
    caught = (
        '<bpmn:task id="t"/><bpmn:boundaryEvent id="b" attachedToRef="t"><bpmn:errorEventDefinition errorRef="e"/>'
        "</bpmn:boundaryEvent>"
    )
    throwing = make_process(START + thrown + flow("start", "end"), beside=error)
    catching = make_process(START + caught + END + flow("start", "t") + flow("b", "end"), beside=error)

    assert find_codes(throwing) == [("end", "not-yet")]
    assert texts(read_model(throwing).errors["e"].code_expression) == ("code", False)
    assert find_codes(catching) == [("b", "code-expression")]


def test_P9_a_job_type_at_an_undefined_task_is_refused() -> None:
    assert find_codes(zeebe("task", '<zeebe:taskDefinition type="t"/>')) == [("it", "misplaced-job")]


def test_P9_unknown_extensions_are_told_or_kept() -> None:
    assert find_notices(zeebe("task", "<zeebe:somethingNew/>")) == [("it", "no-effect")]
    assert find_notices(zeebe("task", '<other:thing xmlns:other="urn:other"/>')) == []


# --- Camunda 7 ---


@pytest.mark.parametrize(
    ("attributes", "type_"),
    [
        ('camunda:type="external" camunda:topic="charge"', "charge"),
        ('camunda:class="org.shop.ChargeCard"', "ChargeCard"),
        ('camunda:delegateExpression="${chargeCard}"', "chargeCard"),
    ],
)
def test_P9_work_of_camunda_7_is_an_activity_of_that_name(attributes: str, type_: str) -> None:
    node = read_node(camunda("serviceTask", attributes))

    assert isinstance(node, model.ServiceTask)
    assert node.job is not None
    assert texts(node.job.type) == (type_, True)


def test_P9_attributes_of_flowable_are_read_as_those_of_camunda_7() -> None:
    vendor = 'xmlns:flowable="http://flowable.org/bpmn"'
    node = read_node(make_path('<bpmn:userTask id="it" flowable:assignee="${boss}"/>', vendor=vendor))

    assert isinstance(node, model.UserTask)
    assert texts(node.assignment.assignee) == ("boss", False)


@pytest.mark.parametrize("kind", ["serviceTask", "sendTask", "businessRuleTask"])
def test_P9_an_expression_of_camunda_7_is_the_work_itself(kind: str) -> None:
    data = camunda(kind, 'camunda:expression="${a + 1}" camunda:resultVariable="b"')
    node = read_node(data)

    assert find_errors(data) == []
    assert isinstance(node, model.ServiceTask | model.SendTask | model.BusinessRuleTask)
    assert node.script is not None
    assert (node.script.expression.text, node.script.result_variable) == ("a + 1", "b")


def test_H1_a_user_task_of_camunda_7_has_its_people_and_form() -> None:
    node = read_node(
        camunda(
            "userTask",
            'camunda:assignee="${boss}" camunda:candidateGroups="a,${b}" camunda:formKey="k" camunda:priority="5"',
        )
    )

    assert isinstance(node, model.UserTask)
    assert texts(node.assignment.assignee) == ("boss", False)
    assert texts(node.assignment.candidate_groups) == ('["a", b]', False)
    assert node.form == model.FormDefinition(form_key="k")


def test_P5_parameters_of_camunda_7_are_mappings() -> None:
    inner = extend(
        '<camunda:inputOutput><camunda:inputParameter name="a">${x.y}</camunda:inputParameter>'
        '<camunda:inputParameter name="l"><camunda:list><camunda:value>1</camunda:value></camunda:list>'
        '</camunda:inputParameter><camunda:inputParameter name="m">'
        '<camunda:map><camunda:entry key="k">${v}</camunda:entry></camunda:map>'
        '</camunda:inputParameter><camunda:outputParameter name="b">text</camunda:outputParameter></camunda:inputOutput>'
    )
    node = read_node(camunda("serviceTask", 'camunda:topic="t" camunda:type="external"', inner))

    assert node.mappings is not None
    assert [(one.target, one.source.text) for one in node.mappings.inputs] == [
        ("a", "x.y"),
        ("l", '["1"]'),
        ("m", '{"k": v}'),
    ]
    assert [(one.target, *texts(one.source)) for one in node.mappings.outputs] == [("b", "text", True)]


def test_P5_a_call_of_camunda_7_hands_over_what_it_names() -> None:
    inner = extend('<camunda:in source="a" target="x"/><camunda:out variables="all"/>')
    node = read_node(camunda("callActivity", 'calledElement="pay" camunda:calledElementBinding="deployment"', inner))

    assert isinstance(node, model.CallActivity)
    assert node.called is not None
    assert node.called.binding is model.Binding.DEPLOYMENT
    assert (node.called.propagates_all_parent_variables, node.called.propagates_all_child_variables) == (False, True)
    assert node.mappings is not None
    assert [(one.target, one.source.text) for one in node.mappings.inputs] == [("x", "a")]


def test_P6_the_counters_of_camunda_7_have_the_names_of_bpmn() -> None:
    loop = (
        '<bpmn:multiInstanceLoopCharacteristics camunda:collection="${items}" camunda:elementVariable="item">'
        '<bpmn:completionCondition xsi:type="bpmn:tFormalExpression">${nrOfCompletedInstances / nrOfInstances >= 0.5}'
        "</bpmn:completionCondition></bpmn:multiInstanceLoopCharacteristics>"
    )
    node = read_node(camunda("userTask", "", loop))

    assert isinstance(node, model.UserTask)
    assert isinstance(node.loop, model.Loop)
    assert texts(node.loop.input_collection) == ("items", False)
    assert texts(node.loop.completion_condition) == ("numberOfCompletedInstances / nrOfInstances >= 0.5", False)


def test_P9_asynchronous_continuations_are_told() -> None:
    assert find_notices(camunda("task", 'camunda:asyncBefore="true"')) == [("it", "always-durable")]


@pytest.mark.parametrize(
    "inner",
    [
        '<camunda:executionListener class="a.B" event="start"/>',
        '<camunda:taskListener expression="${x}" event="create"/>',
        "<camunda:connector/>",
    ],
)
def test_P9_what_needs_java_is_refused(inner: str) -> None:
    assert find_codes(camunda("userTask", "", extend(inner))) == [("it", "needs-java")]


def test_P9_scripts_in_mappings_are_refused() -> None:
    script = '<camunda:script scriptFormat="groovy">1</camunda:script>'
    parameter = f'<camunda:inputParameter name="a">{script}</camunda:inputParameter>'
    inner = extend(f"<camunda:inputOutput>{parameter}</camunda:inputOutput>")

    assert find_codes(camunda("userTask", "", inner)) == [("it", "script-in-mapping")]


# --- JUEL in conditions ---


@pytest.mark.parametrize(
    ("juel", "variables", "value"),
    [
        ("${total > 100}", {"total": 120}, True),
        ("${total &gt;= 100 &amp;&amp; !blocked}", {"total": 100, "blocked": False}, True),
        ("${order.items[0].name == 'a'}", {"order": {"items": [{"name": "a"}]}}, True),
        ("${empty list}", {"list": []}, True),
        ("${not empty list}", {"list": [1]}, True),
        ("${a ? b : c}", {"a": False, "b": 1, "c": 2}, 2),
        ("${name.equals('x') or code ne 5}", {"name": "y", "code": 4}, True),
        ("${list.contains('x')}", {"list": ["x"]}, True),
        ("${text.contains('x')}", {"text": "axb"}, True),
        ("${execution.getVariable('a') lt 3}", {"a": 2}, True),
        ("#{a mod 2 == 1}", {"a": 3}, True),
        ("test.contains(&quot;a&quot;)", {"test": "ab"}, True),
        ("=a and b", {"a": True, "b": True}, True),
        ("a and b", {"a": True, "b": True}, True),
    ],
)
def test_P9_simple_juel_means_the_same_in_feel(juel: str, variables: dict[str, object], value: object) -> None:
    node = '<bpmn:task id="it"/>'
    more = '<bpmn:endEvent id="other"/>' + flow("it", "other", juel)
    definitions = read_model(make_path(node, vendor=CAMUNDA, more=more))
    (condition,) = [one.condition for one in definitions.processes[0].flows if one.condition is not None]

    assert feel.evaluate(condition.text, variables) == value


@pytest.mark.parametrize("juel", ["${service.call(a)}", "${execution.id == 1}", "${a +}", "${unclosed", "${fn(a)}"])
def test_P9_juel_that_reaches_into_java_is_refused(juel: str) -> None:
    more = '<bpmn:endEvent id="other"/>' + flow("it", "other", juel)

    assert find_codes(make_path('<bpmn:task id="it"/>', vendor=CAMUNDA, more=more)) == [("it_other", "juel")]


# --- plain BPMN of any tool ---


def test_P9_prefixes_and_namespaces_of_any_kind_are_read() -> None:
    data = (
        b'<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tns="urn:t" targetNamespace="urn:t">'
        b'<message id="m" name="paid"/><process id="p" isExecutable="1"><startEvent id="s"/>'
        b'<receiveTask id="r" messageRef="tns:m"/><sequenceFlow id="f" sourceRef="s" targetRef="r"/></process></definitions>'
    )
    definitions = read_model(data)
    receive = definitions.processes[0].nodes[1]

    assert isinstance(receive, model.ReceiveTask)
    assert receive.message == "m"
    assert find_errors(data) == []


def test_P9_an_event_may_refer_to_a_definition_beside_the_processes() -> None:
    beside = '<bpmn:timerEventDefinition id="soon"><bpmn:timeDuration>PT1M</bpmn:timeDuration></bpmn:timerEventDefinition>'
    node = "<bpmn:eventDefinitionRef>soon</bpmn:eventDefinitionRef>"
    data = make_path(f'<bpmn:intermediateCatchEvent id="it">{node}</bpmn:intermediateCatchEvent>', beside=beside)
    event = read_node(data)

    assert isinstance(event, model.IntermediateCatchEvent)
    (definition,) = event.definitions
    assert isinstance(definition, model.TimerEventDefinition)
    assert find_errors(data) == []


def test_P9_several_processes_and_their_pools_are_read() -> None:
    processes = "".join(
        f'<bpmn:process id="{name}" isExecutable="true"><bpmn:startEvent id="{name}s"/><bpmn:endEvent id="{name}e"/>'
        f"{flow(f'{name}s', f'{name}e')}</bpmn:process>"
        for name in ("a", "b")
    )
    pools = (
        '<bpmn:collaboration id="c"><bpmn:participant id="p1" name="A" processRef="a"/>'
        '<bpmn:participant id="p2" processRef="b"/></bpmn:collaboration>'
    )
    definitions = read_model(make_file(pools + processes))

    assert [process.id for process in definitions.processes] == ["a", "b"]
    assert [participant.process for participant in definitions.participants] == ["a", "b"]


def test_P9_what_drawings_say_wrongly_refuses_nothing() -> None:
    drawing = (
        '<bpmndi:BPMNDiagram><bpmndi:BPMNPlane bpmnElement="order"><bpmndi:BPMNShape bpmnElement="gone"/>'
        '<bpmndi:BPMNShape bpmnElement="it" isExpanded="maybe"><dc:Bounds x="1" y="NaN" width="a" height="2"/>'
        "</bpmndi:BPMNShape>"
        '<bpmndi:BPMNEdge bpmnElement="f"><di:waypoint x="1"/></bpmndi:BPMNEdge></bpmndi:BPMNPlane></bpmndi:BPMNDiagram>'
    )
    data = make_path('<bpmn:task id="it"/>').replace(b"</bpmn:definitions>", f"{drawing}</bpmn:definitions>".encode())

    assert find_errors(data) == []


def test_P9_ids_that_stand_twice_are_refused() -> None:
    assert ("start", "duplicate-id") in find_codes(make_path('<bpmn:task id="it"/>', more='<bpmn:task id="start"/>'))


def test_P9_choreographies_are_refused() -> None:
    assert ("ch", "choreography") in find_codes(make_path('<bpmn:task id="it"/>', beside='<bpmn:choreography id="ch"/>'))


def test_P9_an_element_that_bpmn_does_not_have_is_refused() -> None:
    assert ("x", "unknown-element") in find_codes(make_path('<bpmn:task id="it"/>', more='<bpmn:magicTask id="x"/>'))


def test_P6_output_element_of_camunda_8_must_be_an_expression() -> None:
    loop = (
        '<bpmn:multiInstanceLoopCharacteristics><bpmn:extensionElements><zeebe:loopCharacteristics inputCollection="=[1]" '
        'outputCollection="all" outputElement="one"/></bpmn:extensionElements></bpmn:multiInstanceLoopCharacteristics>'
    )

    assert find_codes(zeebe("serviceTask", '<zeebe:taskDefinition type="a"/>', content=loop)) == [("it", "bad-loop")]
