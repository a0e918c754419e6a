"""D2: short turns go first, and no kind of turn is left out twice, over all workers of a node."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.envelopes import Cancel
from holdfast.engine.requests import Request
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.commit_outcome import CommitOutcome
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.engine.turns.turn_order import SHORT_TURN, TurnKind, TurnOrder, find_overtaken

CANCEL = Cancel(reason="")
WORKERS = 4
SECONDS = {"S": SHORT_TURN / 10, "M": 0.03, "L": 0.4}
"""How long turns take of workflows called short, medium and long, by the first letter of the execution id."""
BUDGET = 0.5


def make_turn(execution_id: str) -> PendingTurn:
    """A turn for a request (ids that end with R), or for what waits in an inbox."""
    request = Request("default", CANCEL, execution_id) if execution_id.endswith("R") else None
    return PendingTurn("default", execution_id, None, [Arrival(CANCEL, request)])


def find_workflow(turn: PendingTurn) -> str:
    return turn.execution_id[0]


@pytest.fixture
def order() -> TurnOrder:
    """An order that knows how long turns take."""
    return make_order()


def make_order() -> TurnOrder:
    order = TurnOrder()
    for workflow, seconds in SECONDS.items():
        order.note_length(workflow, seconds)
    return order


class PlayedBatch:
    """A batch that takes turns until its time is over, as `TurnTaker` does."""

    def __init__(self, order: TurnOrder, execution_ids: list[str], budget: float = BUDGET) -> None:
        self.turns = [make_turn(execution_id) for execution_id in execution_ids]
        order.arrange(self.turns, find_workflow)
        spent = 0.0
        self.taken: list[str] = []
        self.put_off: list[str] = []
        for turn in self.turns:
            if self.taken and spent > budget:
                self.put_off.append(turn.execution_id)
            else:
                self.taken.append(turn.execution_id)
                spent += SECONDS[turn.execution_id[0]]
        served = {self.kind_of(order, one) for one in self.taken}
        self.overtaken = find_overtaken([(one, self.kind_of(order, one)) for one in self.put_off], served)

    def kind_of(self, order: TurnOrder, execution_id: str) -> TurnKind:
        return order.kind_of(execution_id[0], has_requests=execution_id.endswith("R"))

    def commit(self, order: TurnOrder) -> None:
        outcome = CommitOutcome()
        outcome.planned = [turn.execution_id for turn in self.turns]
        outcome.overtaken = self.overtaken
        order.follow(outcome)


def run_batch(order: TurnOrder, *execution_ids: str) -> list[str]:
    """Run a batch that has time for one long turn; who took turns."""
    batch = PlayedBatch(order, list(execution_ids), 0.1)
    batch.commit(order)
    return batch.taken


def test_D2_what_is_known_of_nobody_stays_in_its_order() -> None:
    turns = [make_turn("L1"), make_turn("S1"), make_turn("L2")]

    TurnOrder().arrange(turns, find_workflow)

    assert [turn.execution_id for turn in turns] == ["L1", "S1", "L2"]


def test_D2_short_turns_go_before_long_ones(order: TurnOrder) -> None:
    assert run_batch(order, "L1", "L2R", "M1", "S1R", "S2") == ["S2", "S1R", "M1", "L1"]


def test_D2_workflow_whose_turns_become_short_counts_as_short_again(order: TurnOrder) -> None:
    for _ in range(10):
        order.note_length("L", 0.001)

    assert order.kind_of("L", has_requests=False) == (0, False)
    assert "L" not in order.seconds


def test_D2_request_behind_inboxes_goes_first_in_its_next_batch(order: TurnOrder) -> None:
    assert run_batch(order, "L1", "L2", "L3R") == ["L1"]
    assert run_batch(order, "L2", "L4", "L3R") == ["L3R"]


def test_D2_request_keeps_its_place_when_it_goes_to_another_worker(order: TurnOrder) -> None:
    run_batch(order, "L1", "L2", "L3R")
    run_batch(order, "L4", "L5")
    run_batch(order, "L6")

    assert run_batch(order, "L2", "L5", "L3R") == ["L3R"]


def test_D2_inboxes_go_first_after_a_flood_of_requests_had_its_batch(order: TurnOrder) -> None:
    requests = [f"L{number}R" for number in range(10, 19)]
    assert run_batch(order, "L1", "L2", *requests) == ["L1"]

    taken = [run_batch(order, "L2", "L3", *requests), run_batch(order, "L2", "L3", *requests[1:])]

    assert taken == [["L10R"], ["L2"]]


def test_D2_long_turn_behind_a_flood_of_shorter_ones_gets_its_turn(order: TurnOrder) -> None:
    flood = [f"M{number}" for number in range(40)]
    assert "L1" not in run_batch(order, "L1", *flood)

    assert run_batch(order, "L1", *flood)[0] == "L1"


def test_D2_lost_turn_keeps_its_rank(order: TurnOrder) -> None:
    run_batch(order, "L1", "L2R")
    outcome = CommitOutcome()
    outcome.planned, outcome.lost = ["L2R"], {"L2R"}

    order.follow(outcome)

    assert run_batch(order, "L3", "L2R") == ["L2R"]


@given(st.lists(st.tuples(st.integers(0, WORKERS - 1), st.lists(st.sampled_from("SML")), st.booleans()), max_size=120))
def test_D2_nobody_is_overtaken_in_a_row_for_long(steps: list[tuple[int, list[str], bool]]) -> None:
    """Each step ends the batch of a worker and begins its next; meanwhile requests or inbox rows arrive."""
    order, numbers, in_a_row = make_order(), count(), Counter[str]()
    queue: list[str] = []
    inbox: list[str] = []
    running: dict[int, PlayedBatch] = {}
    kinds = 2 * len(SECONDS)
    for worker, arriving, are_requests in steps:
        for letter in arriving:
            (queue if are_requests else inbox).append(f"{letter}{next(numbers)}{'R' if are_requests else ''}")
        if (ended := running.pop(worker, None)) is not None:
            ended.commit(order)
            in_a_row = Counter(
                {one: times for one, times in in_a_row.items() if one in ended.overtaken or one not in ended.put_off}
            )
            in_a_row.update(ended.overtaken)
            assert max(in_a_row.values(), default=0) <= WORKERS * kinds
            queue = [one for one in ended.put_off if one.endswith("R")] + queue
            inbox = [one for one in inbox if one not in ended.taken]
        held = {turn.execution_id for batch in running.values() for turn in batch.turns}
        execution_ids = [one for one in inbox if one not in held] + queue
        if execution_ids:
            queue = []
            running[worker] = PlayedBatch(order, execution_ids)
