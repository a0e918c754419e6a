"""P9: files that mean harm, or are none, are refused quickly and with a message that says why."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bpmn.checks import check
from holdfast.bpmn.reading import Reading, read
from tests.bpmn.checks.model_files import END, START, flow, make_process

BPMN = 'xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"'
BILLION_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    f'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><definitions {BPMN}>&c;</definitions>'
)
EXTERNAL = f'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><definitions {BPMN}><process id="&x;"/></definitions>'


def _refuse(data: bytes) -> str:
    begin = process_time()
    reading: Reading = read(data, "bad.bpmn")
    assert process_time() - begin < 20
    assert reading.definitions is None
    (problem,) = reading.problems
    assert problem.code == "xml"
    assert problem.message.startswith("Expected ")
    assert problem.remedy
    return problem.message


@pytest.mark.parametrize("text", [BILLION_LAUGHS, EXTERNAL])
def test_P9_entities_are_refused_before_they_are_read(text: str) -> None:
    assert "DOCTYPE" in _refuse(text.encode())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"   \n ", "empty"),
        (b"\x00\x01\x02", "not"),
        (b"not xml at all", "well-formed"),
        (f"<definitions {BPMN}>\x00</definitions>".encode(), "well-formed"),
        (f"<definitions {BPMN}>".encode(), "well-formed"),
        (b"\xff\xfe\x00\x00<", "utf-16-le"),
        (b'<?xml version="1.0" encoding="utf-7"?><a/>', "utf-7"),
        (b'<?xml version="1.0" encoding="rot13"?><a/>', "rot13"),
        (b"<a>\xff\xfe</a>", "utf-8"),
        (b"<html/>", "definitions"),
        (b'<definitions xmlns="http://www.omg.org/spec/DMN/20180521/MODEL/"/>', "definitions"),
        (b'{"json": true}', "well-formed"),
        (b"PK\x03\x04" + b"\x00" * 100, "well-formed"),
    ],
)
def test_P9_what_is_no_bpmn_is_refused_with_the_reason(data: bytes, why: str) -> None:
    assert why in _refuse(data)


def test_P9_a_file_of_100_mb_is_refused_at_once() -> None:
    data = f"<definitions {BPMN}><process id='".encode() + b"a" * 100_000_000 + b"'/></definitions>"

    begin = process_time()
    message = _refuse(data)

    assert "at most 20,000,000 bytes" in message
    assert process_time() - begin < 20


def test_P9_too_many_elements_are_refused_before_they_are_read() -> None:
    data = f"<definitions {BPMN}>{'<a/>' * 1_000_000}</definitions>".encode()

    assert "elements" in _refuse(data)


@pytest.mark.parametrize("depth", [101, 300, 100_000])
def test_P9_deep_nesting_is_refused(depth: int) -> None:
    inner = "<subProcess>" * depth + "</subProcess>" * depth

    message = _refuse(f"<definitions {BPMN}><process>{inner}</process></definitions>".encode())

    assert message == "Expected elements at most 100 deep inside each other, but they are deeper."


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize("count", [1_001, 150_000])
def test_P9_too_many_attributes_of_one_element_are_refused_in_time(count: int, quote: str) -> None:
    attributes = " ".join(f"z:a{number}={quote}>{quote}" for number in range(count))
    data = f"<definitions {BPMN} xmlns:z='urn:z'>\n<process id='p' {attributes}/></definitions>".encode()

    begin = process_time()
    message = _refuse(data)

    assert message == f"Expected at most 1,000 attributes of one element, but that in line 2 has {count + 1:,}."
    assert process_time() - begin < 5


def test_P9_many_declarations_of_namespaces_are_refused() -> None:
    declarations = " ".join(f'xmlns:n{number}="urn:{number}"' for number in range(2_000))

    assert "attributes" in _refuse(f"<definitions {BPMN} {declarations}/>".encode())


def test_P9_texts_with_many_equals_signs_are_no_attributes() -> None:
    attributes = " ".join(f'z:a{number}="="' for number in range(900))
    content = 'a = "b" ' * 5_000
    text = f"<documentation {attributes} xmlns:z='urn:z'>{content}</documentation>"

    reading = read(
        f"<definitions {BPMN}><process id='p' name='{'=' * 5_000}'>{text}</process></definitions>".encode(), "a.bpmn"
    )

    assert reading.definitions is not None


@pytest.mark.parametrize(
    "inner",
    [
        f"<process id='{'a' * 11_000_000}'/>",
        f"<process xmlns:z='{'a' * 11_000_000}'/>",
        f"<process>{'a' * 11_000_000}</process>",
        f"<process><![CDATA[{'a' * 11_000_000}]]></process>",
        f"<!--{'a' * 11_000_000}-->",
        f"<?pi {'a' * 11_000_000}?>",
        f"<process {' ' * 11_000_000}/>",
        f"<{'a' * 60_000}/>",
        f"<process {'a' * 60_000}='1'/>",
    ],
    ids=["attribute", "namespace", "text", "cdata", "comment", "instruction", "space", "name", "name of an attribute"],
)
def test_P9_what_is_too_long_is_refused_in_our_own_words(inner: str) -> None:
    message = _refuse(f"<definitions {BPMN}>{inner}</definitions>".encode())

    assert message.startswith(
        "Expected names of at most 50,000 bytes, and texts and attributes of at most 10,000,000, but there is a longer "
        "one (line 1, column "
    )


def test_P9_a_long_attribute_is_read_or_refused() -> None:
    data = make_process(START + END + flow("start", "end")).replace(
        b'id="order"', b'id="order" name="%s"' % (b"n" * 9_000_000)
    )

    reading = read(data, "long.bpmn")

    assert reading.definitions is not None or reading.problems


def test_P9_a_long_expression_is_refused_in_time() -> None:
    condition = "1" + " + 1" * 1_000_000
    data = make_process(START + '<bpmn:task id="t"/>' + END + flow("start", "t") + flow("t", "end", condition))

    begin = process_time()
    reading = read(data, "long.bpmn")
    assert reading.definitions is not None
    problems = check(reading.definitions)

    assert any(problem.code == "expression" for problem in problems)
    assert process_time() - begin < 20


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_P9_files_of_usual_encodings_are_read(encoding: str) -> None:
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f'<?xml version="1.0" encoding="{declared}"?><definitions {BPMN}><process id="p" name="Prüfung"/></definitions>'

    reading = read(text.encode(encoding), "order.bpmn")

    assert reading.definitions is not None
    assert reading.definitions.processes[0].name == "Prüfung"


_VALID = make_process(
    f'{START}<bpmn:task id="t" name="Task"><bpmn:extensionElements><zeebe:properties><zeebe:property name="a" value="b"/>'
    f"</zeebe:properties></bpmn:extensionElements></bpmn:task>{END}{flow('start', 't')}{flow('t', 'end')}"
)


@given(st.binary(max_size=300))
def test_P9_reading_never_raises_for_any_bytes(data: bytes) -> None:
    assert read(data, "any.bpmn").problems


@given(st.integers(0, len(_VALID) - 1), st.integers(0, 40), st.binary(max_size=20))
def test_P9_reading_and_checking_never_raise_for_damaged_files(at: int, removed: int, put: bytes) -> None:
    reading = read(_VALID[:at] + put + _VALID[at + removed :], "damaged.bpmn")

    if reading.definitions is not None:
        for problem in check(reading.definitions):
            assert problem.message.startswith("Expected ")


_NAMES = st.sampled_from(
    [
        "startEvent",
        "endEvent",
        "task",
        "subProcess",
        "boundaryEvent",
        "sequenceFlow",
        "exclusiveGateway",
        "scriptTask",
        "intermediateCatchEvent",
        "timerEventDefinition",
        "linkEventDefinition",
        "multiInstanceLoopCharacteristics",
        "script",
        "callActivity",
        "receiveTask",
        "message",
        "eventBasedGateway",
        "errorEventDefinition",
        "laneSet",
        "lane",
        "process",
    ]
)
_ATTRIBUTES = st.dictionaries(
    st.sampled_from(["id", "sourceRef", "targetRef", "attachedToRef", "default", "triggeredByEvent", "messageRef", "name"]),
    st.sampled_from(["a", "b", "c", "true", "", "0"]),
    max_size=4,
)


def _write(name: str, attributes: dict[str, str], content: list[str]) -> str:
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<bpmn:{name}{written}>{''.join(content)}</bpmn:{name}>"


_ELEMENTS: st.SearchStrategy[str] = st.recursive(
    st.builds(_write, _NAMES, _ATTRIBUTES, st.just([])),
    lambda inner: st.builds(_write, _NAMES, _ATTRIBUTES, st.lists(inner)),
    max_leaves=12,
)


@given(st.lists(_ELEMENTS, max_size=6))
def test_P9_reading_and_checking_never_raise_for_elements_in_any_order(elements: list[str]) -> None:
    reading = read(make_process("".join(elements)), "mixed.bpmn")

    assert reading.definitions is not None
    check(reading.definitions)
