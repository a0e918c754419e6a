"""Questions to nodes that have the code of an execution, on every store."""

from __future__ import annotations

from holdfast.store.contract import Store
from holdfast.store.questions import MOST_TRIES, AnswerRow, QuestionRow
from tests.store.builders import ORG, OTHER, commit, id_of, make_row, make_start


def make(key: str, expires_at: int = 100, execution_id: str = "e", org: str = ORG) -> QuestionRow:
    return QuestionRow(key, org, execution_id, b'{"name":"q","args":[]}', expires_at)


async def test_a_question_is_answered_once_and_removed(store: Store) -> None:
    questions = store.questions
    await questions.put(make("a"), 1)
    await questions.put(make("b", 90), 1)

    assert [one.id for one in await questions.list_open(1, [])] == ["b", "a"]
    assert await questions.read_answers(["a", "b"]) == []
    await questions.answer(AnswerRow("a", "default", b"1"))
    await questions.answer(AnswerRow("a", "default", b"2"))
    await questions.answer(AnswerRow("gone", "default", b"2"))

    assert await questions.read_answers(["a", "b", "gone"]) == [AnswerRow("a", "default", b"1")]
    assert [one.id for one in await questions.list_open(1, [])] == ["b"]
    await questions.remove(["a", "b"])
    assert await questions.list_open(1, []) == []
    assert await questions.read_answers(["a"]) == []


async def test_a_question_is_taken_by_one_node_at_a_time_and_by_few(store: Store) -> None:
    questions = store.questions
    await questions.put(make("a"), 1)

    for tries in range(MOST_TRIES):
        now = 1 + 10 * tries
        assert await questions.take(["a", "b"], now, now + 10) == {"a"}
        assert await questions.take(["a"], now + 9, now + 20) == set()
        assert await questions.list_open(now + 9, []) == []
    assert await questions.take(["a"], 90, 99) == set()


async def test_expired_questions_are_removed_with_the_next(store: Store) -> None:
    questions = store.questions
    await questions.put(make("a", 10), 1)
    assert await questions.list_open(10, []) == []

    await questions.put(make("b"), 10)
    await questions.answer(AnswerRow("a", "default", b"1"))

    assert await questions.read_answers(["a"]) == []
    assert await store.check() == []


async def test_questions_are_listed_by_the_workflows_that_a_node_has(store: Store) -> None:
    questions = store.questions
    await commit(store, make_start(make_row(1, workflow="tea")), make_start(make_row(2, workflow="rum")))
    await questions.put(make("tea", 10, id_of(1)), 1)
    await questions.put(make("rum", 20, id_of(2)), 1)
    await questions.put(make("gone", 30, id_of(3)), 1)
    await questions.put(make("of another org", 40, id_of(1), OTHER), 1)

    async def list_for(*workflows: str) -> list[str]:
        return [one.id for one in await questions.list_open(1, workflows)]

    assert await list_for("tea") == ["tea", "gone", "of another org"]
    assert await list_for("rum", "gin") == ["rum", "gone", "of another org"]
    assert await list_for("rum", "tea") == ["tea", "rum", "gone", "of another org"]
    assert await list_for() == ["gone", "of another org"]


async def test_open_questions_are_read_a_page_at_a_time(store: Store) -> None:
    questions = store.questions
    await commit(store, make_start(make_row(1, workflow="tea")))
    for number in range(7):
        await questions.put(make(f"q{number}", 10 + number // 3, id_of(1)), 1)

    pages = [await questions.list_open(1, ["tea"], limit=3)]
    while pages[-1]:
        pages.append(await questions.list_open(1, ["tea"], pages[-1][-1], 3))

    assert [[one.id for one in page] for page in pages] == [["q0", "q1", "q2"], ["q3", "q4", "q5"], ["q6"], []]
    await questions.take(["q3"], 1, 5)
    assert [one.id for one in await questions.list_open(1, ["tea"], pages[0][1], 2)] == ["q2", "q4"]
