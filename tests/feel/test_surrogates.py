"""Halves of surrogate pairs, which are no characters, are refused wherever they come from; pairs are one character."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import feel


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (r'"\uD800"', 1),
        (r'1 + "a\uDC00b"', 5),
        (r'"\U00D800"', 1),
        (r'"\uDE00\uD83D"', 1),
        (r'{"\uD800": 1}', 2),
        (r'"\uD83D" + "\uDE00"', 1),
        ('"\ud800"', 2),
        ("a\udc00", 2),
        ("1 // \ud800", 6),
    ],
)
def test_text_with_half_of_a_pair_is_refused(text: str, column: int) -> None:
    for parse in (feel.compile, feel.compile_unary_tests):
        with pytest.raises(feel.FeelSyntaxError, match="surrogate") as caught:
            parse(text)

        assert caught.value.column == column


@pytest.mark.parametrize("text", [r'"\uD83D\uDE00"', r'"\ud83d\ude00"', r'"\U01F600"', '"😀"'])
def test_pair_of_escapes_is_one_character(text: str) -> None:
    assert feel.evaluate(text) == "😀"
    assert feel.evaluate(f"string length({text})") == 1


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        "ä\udc00",
        ["a", "\ud800"],
        ("\ud800",),
        {"a": {"b": "\ud800"}},
        {"\ud800": 1},
        {"ä": {"\udfff": [1]}},
        feel.Range("a", "\ud800"),
    ],
)
def test_value_with_half_of_a_pair_is_refused(value: Any) -> None:
    for text in ("x", "count(x)", "[x]"):
        with pytest.raises(feel.FeelError, match="surrogate"):
            feel.evaluate(text, {"x": value})
    with pytest.raises(feel.FeelError, match="surrogate"):
        feel.evaluate("x.a", {"x": {"a": value}})
    with pytest.raises(feel.FeelError, match="surrogate"):
        feel.unary_tests("-", value)
    with pytest.raises(feel.FeelError, match="surrogate"):
        feel.from_json([value])
    with pytest.raises(feel.FeelError, match="surrogate"):
        feel.to_json([value])


@pytest.mark.parametrize("text", ["for x in xs return x.a", 'xs[a != "b"]', "xs.a", "some x in xs satisfies x.a != null"])
def test_half_of_a_pair_inside_of_items_is_refused(text: str) -> None:
    with pytest.raises(feel.FeelError, match="surrogate"):
        feel.evaluate(text, {"xs": [{"a": "b"}, {"a": "\ud800"}]})


def test_json_with_half_of_a_pair_is_null_with_a_warning() -> None:
    warnings: list[feel.FeelWarning] = []

    assert feel.evaluate("from json(text)", {"text": r'{"a": ["\ud800"]}'}, warnings=warnings) is None
    assert "surrogate" in str(warnings[0])
    assert feel.evaluate("from json(text)", {"text": r'"\ud83d\ude00"'}) == "😀"
