"""Files that are no models: all that is wrong is told, each with its element and what to do, and nothing is loaded."""

from __future__ import annotations

import pytest

from holdfast import dmn
from holdfast.errors import DmnError
from tests.dmn.models import data, decision, knowledge, make_xml, table, text


def get_problems(xml: str | bytes) -> tuple[str, ...]:
    with pytest.raises(DmnError) as caught:
        dmn.load(xml, strict=True)
    assert caught.value.problems
    assert caught.value.message.startswith("Expected ")
    return caught.value.problems


def get_problem(xml: str | bytes) -> str:
    problems = get_problems(xml)
    assert len(problems) == 1, problems
    return problems[0]


# --- no XML that may be read ---


@pytest.mark.parametrize("xml", ["", b"", "  \n", b"\xef\xbb\xbf"])
def test_empty_file_is_refused(xml: str | bytes) -> None:
    assert "empty" in get_problem(xml)


@pytest.mark.parametrize(
    "xml", ["hello", '{"a": 1}', "<definitions>", "<a></b>", "<a>&nothing;</a>", "<!-- no end", "<a>\x00</a>"]
)
def test_text_that_is_no_xml_is_refused_with_line_and_column(xml: str) -> None:
    problem = get_problem(xml)
    assert "well-formed XML" in problem
    assert "line" in problem


def test_text_with_half_a_character_is_refused() -> None:
    assert "Unicode" in get_problem("<a>\ud800</a>")


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE definitions [<!ENTITY a "b">]><definitions/>',
        '<?xml version="1.0"?><!-- <definitions> --><!DOCTYPE definitions SYSTEM "file:///etc/passwd"><definitions/>',
        "<?pi <definitions> ?>\n<!DOCTYPE definitions><definitions/>",
    ],
)
@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-8-sig", "utf-16"])
def test_document_type_is_refused_before_it_is_read(xml: str, encoding: str | None) -> None:
    assert "DOCTYPE" in get_problem(xml if encoding is None else xml.encode(encoding))


def test_document_type_inside_a_text_is_just_a_text() -> None:
    model = dmn.load(
        make_xml(decision("D", '<literalExpression><text><![CDATA["<!DOCTYPE a>"]]></text></literalExpression>'))
    )

    assert model.evaluate("D", {}).value == "<!DOCTYPE a>"


def test_file_that_is_too_large_is_refused() -> None:
    assert "10,000,000" in get_problem(b"<a>" + b" " * 10_000_000 + b"</a>")


def test_elements_too_deep_inside_each_other_are_refused() -> None:
    assert "deep" in get_problem("<a>" * 230 + "</a>" * 230).lower()


def test_elements_far_too_deep_inside_each_other_are_refused() -> None:
    assert "at most 200 deep" in get_problem("<a>" * 100_000 + "</a>" * 100_000)


def test_unknown_encoding_is_refused() -> None:
    assert "'ebcdic-us'" in get_problem(b'<?xml version="1.0" encoding="EBCDIC-US"?><definitions/>')


def test_bytes_that_are_not_of_their_encoding_are_refused() -> None:
    assert "utf-8" in get_problem(b"<definitions name='\xff'/>")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings_of_real_files_are_read(encoding: str) -> None:
    xml = make_xml(decision("Größe", '"ä"')).replace("UTF-8", encoding.removesuffix("-sig"))

    assert dmn.load(xml.encode(encoding)).evaluate("Größe", {}).value == "ä"


def test_what_is_no_text_is_refused() -> None:
    assert "int" in get_problem(5)  # type: ignore[arg-type]


# --- no DMN ---


@pytest.mark.parametrize(
    "xml",
    [
        "<html/>",
        "<definitions/>",
        '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"/>',
        '<decision xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/"/>',
    ],
)
def test_unknown_root_is_refused(xml: str) -> None:
    assert "'definitions' of DMN 1.1 to 1.6" in get_problem(xml)


def test_reference_with_the_own_namespace_is_fine() -> None:
    xml = make_xml(decision("D", "A", inputs=["A"]), data("A")).replace("#id_A", "urn:test#id_A")

    assert dmn.load(xml).evaluate("D", {"A": 1}).value == 1


def test_unknown_elements_are_named() -> None:
    problem = get_problem(make_xml(decision("D", "1"), "<surprise/>"))

    assert "'surprise'" in problem


def test_elements_of_other_namespaces_are_left_alone() -> None:
    xml = make_xml('<x:surprise xmlns:x="urn:x"/>', decision("D", "<extensionElements><a/></extensionElements>" + text("1")))

    assert dmn.load(xml).evaluate("D", {}).value == 1


@pytest.mark.parametrize("language", ["juel", "http://www.w3.org/TR/xpath", "javascript"])
def test_other_languages_are_refused(language: str) -> None:
    own = get_problem(make_xml(decision("D", text("1", attributes=f'expressionLanguage="{language}"'))))
    general = get_problem(make_xml(decision("D", "1"), attributes=f'expressionLanguage="{language}"'))

    assert language in own
    assert language in general


# --- graphs ---


def test_dangling_reference_names_who_refers_to_what() -> None:
    problem = get_problem(make_xml(decision("D", "1", inputs=["A"])))

    assert problem.startswith("decision 'D' (id id_D, line 3)")
    assert "'id_A'" in problem


def test_reference_to_an_element_of_another_kind_is_refused() -> None:
    assert "decision with the id 'id_A'" in get_problem(make_xml(decision("D", "1", decisions=["A"]), data("A")))


def test_reference_without_an_id_is_refused() -> None:
    xml = make_xml(decision("D", "1", inputs=["A"]), data("A")).replace("#id_A", "A")

    assert "'#id'" in get_problem(xml)


def test_ids_that_stand_twice_are_refused() -> None:
    xml = make_xml(data("A"), data("B")).replace("id_B", "id_A")

    assert "'id_A'" in get_problem(xml)


def test_ids_of_elements_of_two_kinds_that_are_the_same_are_refused() -> None:
    xml = make_xml(data("A"), decision("B", "1")).replace("id_B", "id_A")

    assert "'id_A'" in get_problem(xml)


def test_names_that_stand_twice_are_refused() -> None:
    xml = make_xml(data("A"), decision("B", "1").replace('"B"', '"A"'))

    assert "called the same" in get_problem(xml)


def test_elements_without_a_name_are_refused() -> None:
    assert "Expected a name" in get_problem(make_xml('<decision id="d"/>'))


def test_cycle_of_decisions_is_told_with_its_names() -> None:
    xml = make_xml(
        decision("A", "1", decisions=["B"]), decision("B", "1", decisions=["C"]), decision("C", "1", decisions=["A"])
    )

    assert "A -> B -> C -> A" in get_problem(xml)


def test_decision_that_needs_itself_is_a_cycle() -> None:
    assert "A -> A" in get_problem(make_xml(decision("A", "1", decisions=["A"])))


def test_cycle_by_way_of_a_service_is_told() -> None:
    service = '<decisionService id="id_S" name="S"><outputDecision href="#id_A"/></decisionService>'

    assert "A -> S -> A" in get_problem(make_xml(decision("A", "S()", knowledge=["S"]), service))


@pytest.mark.parametrize("kind", ["Java", "PMML"])
def test_functions_of_other_kinds_are_refused(kind: str) -> None:
    xml = make_xml(knowledge("K", [], "1")).replace("<encapsulatedLogic>", f'<encapsulatedLogic kind="{kind}">')

    assert repr(kind) in get_problem(xml)


# --- types ---


def test_unknown_type_is_refused() -> None:
    assert "'tNothing'" in get_problem(make_xml(data("A", "tNothing")))


def test_type_that_is_only_itself_is_refused() -> None:
    one = '<itemDefinition name="a"><typeRef>b</typeRef></itemDefinition>'
    other = '<itemDefinition name="b"><typeRef>a</typeRef></itemDefinition>'

    problems = get_problems(make_xml(one, other, knowledge("K", ["x:a"], "x", type_ref="b")))

    assert any("a -> b -> a" in problem for problem in problems)


def test_types_of_the_same_name_are_refused() -> None:
    one = '<itemDefinition name="a"><typeRef>string</typeRef></itemDefinition>'

    assert "Rename" in get_problem(make_xml(one, one))


# --- tables ---


@pytest.mark.parametrize("policy", ["UNIQE", "unique", "", "X"])
def test_unknown_hit_policy_is_refused(policy: str) -> None:
    assert repr(policy) in get_problem(make_xml(decision("D", table(["1"], ["o"], [], policy=policy))))


def test_unknown_aggregation_is_refused() -> None:
    xml = make_xml(decision("D", table(["1"], ["o"], [["-", "1"]], policy="COLLECT", aggregation="AVG")))

    assert "'AVG'" in get_problem(xml)


def test_aggregation_without_collecting_is_refused() -> None:
    xml = make_xml(decision("D", table(["1"], ["o"], [["-", "1"]], policy="UNIQUE", aggregation="SUM")))

    assert "COLLECT" in get_problem(xml)


def test_aggregation_of_several_outputs_is_refused() -> None:
    xml = make_xml(decision("D", table(["1"], ["o", "p"], [["-", "1", "2"]], policy="COLLECT", aggregation="SUM")))

    assert "one output" in get_problem(xml)


def test_rule_with_too_few_or_too_many_cells_is_refused() -> None:
    rule = "<rule><inputEntry><text>-</text></inputEntry></rule>"
    xml = make_xml(decision("D", table(["1", "2"], ["o"], []).replace("</decisionTable>", f"{rule}</decisionTable>")))

    problems = get_problems(xml)

    assert len(problems) == 2
    assert "rule 1" in problems[0]
    assert "Expected 2 cells 'inputEntry', one for each column, but there are 1." in problems[0]
    assert "Expected 1 cell 'outputEntry'" in problems[1]


def test_table_without_outputs_is_refused() -> None:
    assert "at least one output" in get_problem(make_xml(decision("D", table(["1"], [], []))))


def test_several_outputs_without_names_are_refused() -> None:
    assert "it has none" in get_problem(make_xml(decision("D", table(["1"], ["o", ""], []))))


@pytest.mark.parametrize("policy", ["PRIORITY", "OUTPUT ORDER"])
def test_priorities_without_output_values_are_refused(policy: str) -> None:
    assert "output values" in get_problem(make_xml(decision("D", table(["1"], ["o"], [["-", "1"]], policy=policy))))


def test_bad_feel_in_a_cell_is_shown_with_a_caret() -> None:
    xml = make_xml(decision("D", table(["1"], ["o"], [["-", "1"], ["< 5 5", "1"]])))

    problem = get_problem(xml)

    assert "rule 2" in problem
    assert "input '1'" in problem
    assert "line 1, column 5" in problem
    lines = problem.splitlines()
    assert lines[-2:] == ["< 5 5", "    ^"]


def test_every_bad_cell_is_told_also_if_they_are_the_same() -> None:
    xml = make_xml(decision("D", table(["1"], ["o"], [["((", "1"], ["((", "]"]])))

    assert len(get_problems(xml)) == 3


# --- boxes ---


@pytest.mark.parametrize(
    ("box", "told"),
    [
        (
            "<context><contextEntry>"
            + text("1")
            + "</contextEntry><contextEntry>"
            + text("1")
            + "</contextEntry></context>",
            "variable",
        ),
        ("<context><contextEntry><variable name='a'/></contextEntry></context>", "Expected an expression"),
        (
            "<context>" + ("<contextEntry><variable name='a'/>" + text("1") + "</contextEntry>") * 2 + "</context>",
            "another name than 'a'",
        ),
        ("<invocation>" + text("f") + "<binding>" + text("1") + "</binding></invocation>", "parameter"),
        ("<invocation/>", "Expected an expression"),
        ("<relation><column name='a'/><row>" + text("1") * 2 + "</row></relation>", "Expected 1 cell, "),
        ("<conditional><if>" + text("true") + "</if><then>" + text("1") + "</then></conditional>", "'else'"),
        ("<for><in>" + text("[1]") + "</in><return>" + text("1") + "</return></for>", "iteratorVariable"),
        ("<filter><in>" + text("[1]") + "</in></filter>", "'match'"),
        ("<functionDefinition><formalParameter name='a'/><formalParameter name='a'/></functionDefinition>", "twice"),
        ("<functionDefinition kind='Java'/>", "'Java'"),
        (text("1") + text("2"), "there are 2"),
        ("<list><column/></list>", "'column'"),
    ],
)
def test_boxes_that_lack_something_are_refused(box: str, told: str) -> None:
    assert told in get_problem(make_xml(decision("D", box)))


def test_everything_that_is_wrong_is_told_at_once() -> None:
    xml = make_xml(
        data("A", "tNothing"),
        decision("D", "1 +", inputs=["Missing"]),
        decision("E", table(["A"], ["o"], [[")", "1"]], policy="X")),
        knowledge("K", ["a"], "a a a ("),
    )

    problems = get_problems(xml)

    assert len(problems) == 6
    for told in ("tNothing", "id_Missing", "'X'", "rule 1", "decision 'D'", "business knowledge model 'K'"):
        assert any(told in problem for problem in problems), told


def test_problems_without_end_are_counted() -> None:
    problems = get_problems(make_xml(*(decision(f"D{number}", "(") for number in range(500))))

    assert len(problems) == 201
    assert problems[-1] == "and 300 more"


def test_very_many_decisions_are_refused() -> None:
    xml = make_xml(*(decision(f"D{number}", "1") for number in range(2_001)))

    assert "at most 2,000 decisions, services and knowledge models, but there are 2,001" in get_problem(xml)
    assert len(dmn.load(xml, max_decisions=2_001).decisions) == 2_001


def test_very_many_rules_are_refused() -> None:
    xml = make_xml(
        decision("D", table(["1"], ["o"], [["-", "1"]] * 5)), decision("E", table(["1"], ["o"], [["-", "1"]] * 6))
    )

    with pytest.raises(DmnError, match="at most 10 rules in all tables, but there are 11"):
        dmn.load(xml, max_rules=10)
    assert dmn.load(xml, max_rules=11).evaluate("D", {}).trace
    assert dmn.loading.MOST_RULES == 20_000


def test_unknown_decision_is_refused_with_those_that_there_are() -> None:
    model = dmn.load(make_xml(decision("D", "1")))

    with pytest.raises(DmnError, match=r"there is no 'X'\. It has 'D'"):
        model.evaluate("X", {})
