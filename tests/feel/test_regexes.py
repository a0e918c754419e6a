"""Regular expressions as XPath writes them, run in linear time."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import FeelLimitExceeded
from holdfast.feel import regexes
from holdfast.feel.regex_sets import ALL, CharSet, _find_variants, add_case_variants, complement, find_property, unite
from holdfast.feel.regex_syntax import translate
from holdfast.feel.running import Fail, Run

PLENTY = 10**9


def matches(text: str, pattern: str, flags: str = "") -> bool:
    return regexes.matches(Run(steps=PLENTY), text, pattern, flags)


def replace(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    return regexes.replace(Run(), text, pattern, replacement, flags)


def split(text: str, pattern: str) -> list[str]:
    return regexes.split(Run(), text, pattern)


def refuse(pattern: str, flags: str = "") -> str:
    with pytest.raises(Fail) as caught:
        regexes.compile_pattern(Run(), pattern, flags)
    return str(caught.value)


# --- anchors and the dot ---


def test_a_pattern_matches_anywhere_unless_it_is_anchored() -> None:
    assert matches("foobar", "oba")
    assert not matches("foobar", "^oba")
    assert not matches("foobar", "oba$")


def test_the_end_is_the_very_end() -> None:
    assert not matches("a\n", "a$")
    assert matches("a\n", "a\\n$")


def test_the_dot_matches_neither_newline_nor_carriage_return() -> None:
    assert not matches("a\nb", "a.b")
    assert not matches("a\rb", "a.b")
    assert matches("a\nb", "a.b", "s")
    assert matches("a\rb", "a.b", "s")


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abcd\ndefg", "^defg$", True),
        ("\nabcd\ndefg\n", "^$", True),
        ("abcd\n\ndefg\n", "^$", True),
        ("abcd\ndefg\n", "^$", False),
        ("abcd\ndefg\n", "defg$", True),
        ("abcd\ndefg\n", "\\n$", False),
        ("abcd\ndefg", "g$", True),
    ],
)
def test_lines_end_before_newlines_but_none_behind_the_last(text: str, pattern: str, expected: bool) -> None:
    assert matches(text, pattern, "m") is expected


# --- flags ---


def test_case_is_ignored_in_characters_and_ranges_but_not_in_categories() -> None:
    assert matches("ABC", "abc", "i")
    assert matches("x", "[A-Z-[OI]]", "i")
    assert not matches("i", "[A-Z-[OI]]", "i")
    assert not matches("q", "[^Q]", "i")
    assert not matches("a", "\\p{Lu}", "i")


def test_case_is_ignored_beyond_ascii() -> None:
    assert matches("\u212a", "k", "i")
    assert matches("ÄÖ", "äö", "i")
    assert matches("\u03c3", "[\u03a3]", "i")
    assert matches("\u03c2", "\u03a3", "i")


def test_whitespace_is_dropped_with_flag_x_but_kept_in_classes() -> None:
    assert matches("hello world", " he ll o[ ]worl d", "x")
    assert matches("hello world", "hello\\ sworld", "x")
    assert matches("hello world", "\\p{ I s B a s i c L a t i n }+", "x")
    assert matches("[a", "\\[ a", "x")


def test_everything_is_literal_with_flag_q() -> None:
    assert matches("a.b", "A.B", "qi")
    assert not matches("axb", "a.b", "q")
    assert replace("a.b.c", ".", "$1\\", "q") == "a$1\\b$1\\c"


@pytest.mark.parametrize("flags", ["p", " ", "X", "ig"])
def test_unknown_flags_are_refused(flags: str) -> None:
    assert "is no flag" in refuse("a", flags)


# --- classes and escapes ---


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("[a-z-[aeiou]]", "bz", "aeA"),
        ("[^a-z-[0-9]]", "A-", "a5"),
        ("[a-z-[b-y-[m]]]", "azm", "bny"),
        ("[\\w-[\\d_]]", "aé", "5_"),
        ("[a-]", "a-", "b"),
        ("[-a]", "a-", "b"),
        ("[\\w-.]", "a-.", ","),
        ("[a-c-e]", "abc-e", "d"),
        ("[\\-\\]\\[^]", "-][^", "\\"),
        ("[^^]", "a", "^"),
        ("\\s", " \t\n\r", "\u00a0\x0b"),
        ("\\S", "a\u00a0", " \n"),
        ("\\d", "5\u0665", "a"),
        ("\\D", "a", "5\u0665"),
        ("\\w", "aé5+€\U0001f40e", "-_ .\u0378"),
        ("\\W", "-_ .\u0378", "aé5+€"),
        ("[\\W5]", "-5", "6a"),
        ("[^\\W]", "a5", "-_"),
        ("\\i", "a_:é", "5-."),
        ("\\I", "5-.", "a_:"),
        ("\\c", "a_:5-.", " ,"),
        ("\\C", " ,", "a5"),
        ("\\p{L}", "aé", "5"),
        ("\\P{L}", "5", "aé"),
        ("\\p{Lu}", "AÉ", "a"),
        ("\\p{Nd}", "5", "a"),
        ("\\p{Cn}", "\u0378\U000e0080", "a"),
        ("\\P{Cn}", "a", "\u0378"),
        ("\\p{C}", "\x00\u200b\u0378\ue000\U00100000", "a"),
        ("[^\\p{C}]", "a", "\u0378"),
        ("\\p{IsBasicLatin}", "a~", "é"),
        ("\\P{IsBasicLatin}", "é", "a"),
        ("\\p{IsGreek}", "\u03b1", "a"),
        ("\\p{IsLatin-1Supplement}", "é", "a"),
        ("[\\p{IsCyrillic}-[\\p{Lu}]]", "я", "Яa"),
        ("[a-[a]]", "", "ab"),
    ],
)
def test_classes_hold_what_xml_schema_says(pattern: str, inside: str, outside: str) -> None:
    assert [one for one in inside if not matches(one, f"^{pattern}$", "s")] == []
    assert [one for one in outside if matches(one, f"^{pattern}$", "s")] == []


def test_every_escaped_sign_is_itself() -> None:
    for sign in "\\|.-^?*+{}()[]$":
        assert matches(sign, f"^\\{sign}$")
        assert matches(sign, f"^[\\{sign}]$")


# --- what cannot be ---


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(?=b)", "look-around"),
        ("(?<name>a)", "named groups"),
        ("(?i)a", "flags in groups"),
        ("\\bfoo", "no escape"),
        ("\\u0041", "no escape"),
        ("a\\", "single backslash"),
        ("(.)\\1", "linear time"),
        ("(a|b)\\1", "linear time"),
        ("(a)?\\1", "linear time"),
        ("(?:(a)|b)\\1", "linear time"),
        ("(a)|\\1", "linear time"),
        ("\\1(a)", "not closed before"),
        ("(a\\1)", "not closed before"),
        ("(asd)[\\1]", "no escape"),
        ("a{1001}", "1,000 times"),
        ("a{99999999999}", "1,000 times"),
        ("(a{100}){100}", "repeats too much"),
        ("\\p{L}{1000}", "too large"),
        ("[\\w-[\\d]]" * 100, "too many large classes"),
        ("*", "nothing"),
        ("a**", "nothing"),
        ("a|*", "nothing"),
        ("a{,5}", "'{n}'"),
        ("a{x}", "'{n}'"),
        ("a{3", "'{n}'"),
        ("a{2,1}", "more at least"),
        ("a]", "closes nothing"),
        ("a}", "closes nothing"),
        ("(a", "never closed"),
        ("a)", "closes nothing"),
        ("[a", "never closed"),
        ("[]", "nothing in it"),
        ("[^]", "nothing in it"),
        ("[b-a]", "backwards"),
        ("[a-\\d]", "no characters"),
        ("[--a]", "no characters"),
        ("[a[b]]", "must be written"),
        ("[a-[b]c]", "goes on"),
        ("\\p{Xx}", "neither a category"),
        ("\\p{IsNowhere}", "neither a category"),
        ("\\pL", "no name in braces"),
        ("(" * 200 + ")" * 200, "more than 100 deep"),
        ("[a-" * 200, "more than 100 deep"),
        ("x" * 10_001, "more than 10,000"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    assert reason in refuse(pattern)


def test_a_back_reference_to_a_fixed_text_is_that_text() -> None:
    assert matches("aA", "^(a)\\1$", "i")
    assert matches("abcabc", "^(abc)\\1$")
    assert not matches("abcabd", "^(abc)\\1$")
    assert matches("xaa0", "(x)(a)\\20")


# --- replacing and splitting ---


@pytest.mark.parametrize(
    ("text", "pattern", "replacement", "expected"),
    [
        ("abcd", "(ab)|(a)", "[1=$1][2=$2]", "[1=ab][2=]cd"),
        ("facetiously", "[iouy]", "[$0]", "facet[i][o][u]sl[y]"),
        ("abc", "b", "\\$\\\\", "a$\\c"),
        ("abc", "(b)", "$12", "ab2c"),
        ("abc", "b", "$1", "ac"),
        ("abracadabra", "a.*?a", "*", "*c*bra"),
        ("AAAA", "A+?", "b", "bbbb"),
        ("aéb", "é", "€", "a€b"),
    ],
)
def test_groups_are_put_into_replacements(text: str, pattern: str, replacement: str, expected: str) -> None:
    assert replace(text, pattern, replacement) == expected


@pytest.mark.parametrize("replacement", ["$", "$x", "\\", "\\n"])
def test_a_replacement_that_means_nothing_is_refused(replacement: str) -> None:
    with pytest.raises(Fail, match="replacement"):
        replace("a", "a", replacement)


@pytest.mark.parametrize("pattern", ["", "x*", "a|", "^", "$", "(a?)"])
def test_a_pattern_that_matches_the_empty_text_neither_replaces_nor_splits(pattern: str) -> None:
    with pytest.raises(Fail, match="empty text"):
        replace("abc", pattern, "-")
    with pytest.raises(Fail, match="empty text"):
        split("abc", pattern)


def test_splitting_keeps_what_is_empty() -> None:
    assert split("a;b;c;;", ";") == ["a", "b", "c", "", ""]
    assert split("", ";") == [""]
    assert split("a1b22c", "(\\d)+") == ["a", "b", "c"]


def test_extracting_finds_empty_matches_once() -> None:
    assert regexes.extract(Run(), "baac", "a*") == ["", "aa", "", ""]
    assert regexes.extract(Run(), "é\U0001f40e", "$") == [""]
    assert regexes.extract(Run(), "é\U0001f40e", "x*") == ["", "", ""]


def test_half_of_a_surrogate_pair_is_no_text_to_search() -> None:
    with pytest.raises(Fail, match="surrogate"):
        matches("a\ud800", "a")
    assert not matches("a", "\ud800")


# --- limits ---


def test_patterns_that_ruin_backtracking_take_no_time() -> None:
    assert not matches("a" * 50_000 + "b", "^(a+)+$")
    assert not matches("x" * 100_000, "(x+x+)+y")


def test_a_match_that_is_looked_for_again_and_again_runs_into_the_limit() -> None:
    with pytest.raises(FeelLimitExceeded):
        regexes.extract(Run(steps=100_000), "a" * 1_000_000, "a.*b|a")


def test_patterns_that_are_hard_to_compile_run_into_the_limit() -> None:
    run = Run(steps=80_000)

    assert regexes.matches(run, "a", "\\w{1,64}", "")
    with pytest.raises(FeelLimitExceeded):
        regexes.matches(run, "a", "\\w{1,65}", "")
    with pytest.raises(FeelLimitExceeded):
        regexes.matches(Run(steps=4_000), "a", "\\p{L}{1000}", "")


def test_a_pattern_costs_the_same_whether_it_is_known_or_not() -> None:
    costs = set()
    for _ in range(2):
        run = Run()
        regexes.matches(run, "a", "known or [not]", "")
        costs.add(run.steps)

    assert len(costs) == 1


def test_many_short_matches_are_within_the_limit() -> None:
    assert len(regexes.split(Run(), " , ".join("x" * 20_000), "\\s*,\\s*")) == 20_000
    assert len(regexes.replace(Run(), "abc " * 100_000, "\\s+", "", "")) == 300_000


def test_a_text_that_would_be_too_long_is_not_made() -> None:
    with pytest.raises(FeelLimitExceeded):
        replace("a" * 10_000, "a", "b" * 10_000)


@pytest.mark.parametrize(
    ("pattern", "is_far"),
    [("abc", False), ("a+", False), ("a+|b*", False), ("(a+)", False), ("a+b", True), ("(a+)b", True), ("(a+){2}", True)],
)
def test_a_loop_with_something_behind_it_may_look_far(pattern: str, is_far: bool) -> None:
    assert translate(pattern, frozenset()).is_far is is_far


# --- for all ---

SIMPLE = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "\\d", "[0-9]", "c"])
REPEATED = st.tuples(SIMPLE, st.sampled_from(["", "?", "*", "+", "{2}", "{1,2}", "??", "*?", "+?"])).map("".join)
BRANCH = st.lists(REPEATED | REPEATED.map("({})".format), min_size=1, max_size=4).map("".join)
PATTERN = st.lists(BRANCH, min_size=1, max_size=3).map("|".join)
TEXT = st.text("abc12", max_size=12)


@given(PATTERN, TEXT)
def test_what_is_found_is_what_python_finds(pattern: str, text: str) -> None:
    found = [one[0] for one in re.finditer(pattern, text)]

    assert matches(text, pattern) is bool(re.search(pattern, text))
    if not re.search(pattern, ""):
        assert regexes.extract(Run(), text, pattern) == found
        assert replace(text, pattern, "<$0>") == re.sub(pattern, r"<\g<0>>", text)


@given(st.text(max_size=6), st.sampled_from(["", "s", "m", "i", "x", "q", "smix"]), st.text(st.characters(codec="utf-8")))
def test_any_pattern_runs_or_is_refused(pattern: str, flags: str, text: str) -> None:
    try:
        regex = regexes.compile_pattern(Run(), pattern, flags)
    except Fail:
        return

    assert regex.is_in(Run(), text.encode()) is matches(text, pattern, flags)


RANGES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)).map(lambda pair: (pair[0], sum(pair))), max_size=5).map(
    unite
)


@given(RANGES, RANGES)
def test_sets_are_subtracted_like_sets(left: tuple[tuple[int, int], ...], right: tuple[tuple[int, int], ...]) -> None:
    def to_set(ranges: tuple[tuple[int, int], ...]) -> set[int]:
        return {code for start, end in ranges for code in range(start, end + 1)}

    assert to_set(CharSet(left).subtract(CharSet(right)).ranges) == to_set(left) - to_set(right)
    assert complement(complement(left)) == left


def test_nothing_and_everything_are_each_other() -> None:
    assert complement(()) == ALL
    assert complement(ALL) == ()


def test_ascii_letters_have_the_variants_that_the_table_says() -> None:
    for code in range(0x80):
        alone = ((code, code),)
        table = set(_find_variants().get(code, {code}))

        assert {one for start, end in add_case_variants(alone) for one in range(start, end + 1)} == table | {code}


def test_categories_are_those_of_the_characters() -> None:
    for name in ("Lu", "Nd", "P", "C", "Cn", "Co"):
        found = find_property(name, is_negated=False)
        assert found is not None
        ranges = found.resolve()
        for code in [*range(0, 0x3000, 7), 0x10FFFF, 0xE0001, 0xF0000, 0x50000]:
            is_inside = any(start <= code <= end for start, end in ranges)
            assert is_inside is unicodedata.category(chr(code)).startswith(name)
