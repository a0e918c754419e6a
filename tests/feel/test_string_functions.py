"""The functions of strings: DMN's and Camunda's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import feel
from holdfast.errors import FeelLimitExceeded
from holdfast.feel.functions.strings import STRINGS
from holdfast.feel.running import Run
from holdfast.feel.values import Value

HORSE = "\U0001f40e"


def evaluate(expression: str, /, **variables: Value) -> Value:
    return feel.evaluate(expression, variables)


def warn(expression: str, /, **variables: Value) -> str:
    """The warning with which an expression became null."""
    warnings: list[feel.FeelWarning] = []
    assert feel.evaluate(expression, variables, warnings=warnings) is None
    return str(warnings[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('substring("foobar", 3)', "obar"),
        ('substring("foobar", 3, 3)', "oba"),
        ('substring("foobar", -2, 1)', "a"),
        ('substring("foobar", -6, 6)', "foobar"),
        ('substring("foobar", 3, 3.8)', "oba"),
        ('substring("foobar", 2.9)', "oobar"),
        ('substring("foobar", 3, 1000)', "obar"),
        ('substring("foobar", 3, 0)', ""),
        ('substring("foobar", 3, -1)', ""),
        ('substring("foobar", 7)', ""),
        ('substring("foobar", -7)', ""),
        ('substring(string: "foobar", start position: 3)', "obar"),
    ],
)
def test_substring_takes_whole_characters_from_a_position_on(text: str, expected: str) -> None:
    assert evaluate(text) == expected


def test_substring_has_no_position_zero() -> None:
    assert "the first position is 1" in warn('substring("foobar", 0)')


def test_a_character_beyond_the_first_plane_counts_as_one() -> None:
    assert evaluate("string length(text)", text=HORSE * 2) == 2
    assert evaluate("substring(text, 2)", text=f"{HORSE}foo") == "foo"
    assert evaluate("substring(text, -1, 1)", text=f"foo{HORSE}") == HORSE
    assert evaluate('replace(text, ".", "x")', text=f"{HORSE}é") == "xx"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('upper case("aBc4")', "ABC4"),
        ('upper case("straße")', "STRASSE"),
        ('lower case("aBc4")', "abc4"),
        ('substring before("foobar", "bar")', "foo"),
        ('substring before("foobar", "x")', ""),
        ('substring before("abc", "")', ""),
        ('substring after("foobar", "ob")', "ar"),
        ('substring after("foobar", "x")', ""),
        ('substring after("abc", "")', "abc"),
        ('contains("foobar", "of")', False),
        ('contains("", "")', True),
        ('starts with("foobar", "fo")', True),
        ('ends with("foobar", "r")', True),
        ('ends with("foobar", "fo")', False),
    ],
)
def test_parts_of_strings_are_found(text: str, expected: Value) -> None:
    assert evaluate(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('string join(["a", "b", "c"])', "abc"),
        ('string join(["a", "b", "c"], ", ")', "a, b, c"),
        ('string join(["a", null, "c"], "X")', "aXc"),
        ('string join(["a", "b"], null)', "ab"),
        ('string join([], "X")', ""),
        ('string join("a", "X")', "a"),
        ('string join(["a", "b"], "-", "<", ">")', "<a-b>"),
        ('string join(list: ["a", "b"], delimiter: "-", prefix: "<", suffix: ">")', "<a-b>"),
        ('string join([], "-", "<", ">")', "<>"),
        ('string join(["a", "b"], "-", null, null)', "a-b"),
    ],
)
def test_strings_are_joined_without_nulls(text: str, expected: str) -> None:
    assert evaluate(text) == expected


def test_only_strings_are_joined() -> None:
    assert "no string" in warn('string join(["a", 1], "X")')


def test_a_prefix_without_a_suffix_is_none() -> None:
    assert evaluate('string join(["a"], "X", "foo")') is None


def test_patterns_are_matched_replaced_and_split() -> None:
    assert evaluate('matches("foobar", "^fo*bar")') is True
    assert evaluate('matches("FooBar", "foo", "i")') is True
    assert evaluate('matches("abracadabra", "bra", null)') is True
    assert evaluate('replace("0123456789", "(\\d{3})(\\d{3})(\\d{4})", "($1) $2-$3")') == "(012) 345-6789"
    assert evaluate('replace("How do you feel?", "Feel", "FEEL", "i")') == "How do you FEEL?"
    assert evaluate('split("John Doe", "\\s")') == ["John", "Doe"]
    assert evaluate('split("", ",")') == [""]


def test_all_matches_are_extracted() -> None:
    assert evaluate('extract("references are 1234, 1256, 1378", "12[0-9]*")') == ["1234", "1256"]
    assert evaluate('extract("none", "[0-9]+")') == []


def test_a_wrong_pattern_is_null_and_says_why() -> None:
    assert "look-around" in warn('matches("a", "a(?=b)")')


def test_blanks_are_trimmed_and_seen() -> None:
    assert evaluate('trim("  hello   world ")') == "hello   world"
    assert evaluate('is blank("")') is True
    assert evaluate('is blank(" \t")') is True
    assert evaluate('is blank("hello world")') is False


def test_base64_is_of_the_bytes_of_utf_8() -> None:
    assert evaluate('to base64("FEEL")') == "RkVFTA=="
    assert evaluate("to base64(text)", text="é") == "w6k="
    assert evaluate('from base64("RkVFTA==")') == "FEEL"
    assert evaluate('from base64(value: "w6k=")') == "é"
    for text in ("!!!", "RkVFTA", "/w==", "é"):
        assert "Base64" in warn("from base64(text)", text=text)


def test_a_uuid_comes_from_the_source_that_was_given() -> None:
    made = feel.evaluate("uuid()", random=lambda bits: (1 << bits) - 1)

    assert made == "ffffffff-ffff-4fff-bfff-ffffffffffff"
    assert feel.evaluate("uuid()", random=lambda _: 0) == "00000000-0000-4000-8000-000000000000"
    assert "source of randomness" in warn("uuid()")


def test_a_string_that_would_be_too_long_is_not_made() -> None:
    with pytest.raises(FeelLimitExceeded):
        evaluate("string join(for i in 1..1000 return text)", text="x" * 100_000)


def test_every_function_is_called_with_its_first_parameter_by_name() -> None:
    names = {name: forms[0].parameters[0].name for name, forms in STRINGS.items() if forms[0].parameters}

    assert names["matches"] == names["replace"] == "input"
    assert names["string join"] == "list"
    assert names["to base64"] == "value"
    assert {names[name] for name in ("substring", "contains", "split", "extract", "trim")} == {"string"}


@given(st.text(st.characters(codec="utf-8"), max_size=30), st.text(st.characters(codec="utf-8"), min_size=1, max_size=3))
def test_before_match_and_after_make_up_the_string(text: str, match: str) -> None:
    run = Run()
    before = STRINGS["substring before"][0].call(run, text, match)
    after = STRINGS["substring after"][0].call(run, text, match)

    assert before + match + after == text if match in text else before == after == ""


@given(st.text("ab.$\\( é", max_size=30), st.text("ab.$\\( é", min_size=1, max_size=2))
def test_split_by_a_quoted_pattern_is_split_by_the_text(text: str, delimiter: str) -> None:
    quoted = re.sub(r"[.$\\(]", lambda found: f"\\{found[0]}", delimiter)

    assert STRINGS["split"][0].call(Run(), text, quoted) == text.split(delimiter)


@given(st.text("ab.$\\( é", max_size=30), st.text("ab.$\\( é", min_size=1, max_size=2), st.text("x$\\1", max_size=4))
def test_replace_with_flag_q_replaces_the_text_itself(text: str, pattern: str, replacement: str) -> None:
    assert STRINGS["replace"][0].call(Run(), text, pattern, replacement, "q") == text.replace(pattern, replacement)
