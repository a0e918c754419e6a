"""A straight run, one that crashes after each event, one from snapshots and one in other batches are in the same states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random

import msgspec
import pytest

from holdfast.bpmn.program import ProcessProgram
from holdfast.bpmn.state import encode_state
from holdfast.core import envelopes
from holdfast.core.envelopes import AnyEnvelope
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.turn import fold
from tests.bpmn.oracles.driving import MOST_STEPS, list_batches
from tests.bpmn.oracles.random_processes import make_process
from tests.bpmn.support.consistency import check_rest
from tests.bpmn.support.playing import BEGIN, PlayedExecution, PlayedProcess, compile_xml, encode

Told = tuple[Instant, tuple[AnyEnvelope, ...]]


class _Play(PlayedProcess):
    checks_each_turn = False
    states: list[bytes]


class _Retold(PlayedExecution):
    checks_each_turn = False


def disturb(play: PlayedProcess, random: Random) -> None:
    """Let something happen that no diagram asks for: failures, corrections, signals that nobody waits for."""
    jobs = list(play.execution.activities)
    match random.randrange(5):
        case 0 if jobs:
            play.fail_job(play.element_of(random.choice(jobs)))
        case 1 if jobs:
            play.throw_error(play.element_of(random.choice(jobs)), "UNKNOWN")
        case 2:
            play.set_variables({f"extra{random.randrange(3)}": random.randrange(100)})
        case 3:
            play.tell(envelopes.Signal(name=f"signal{random.randrange(2)}", value=encode({"k": 1})))
        case _:
            play.resolve_incident(None, {"extra": 1})


def drive_with_disturbances(play: PlayedProcess, random: Random) -> Iterator[None]:
    """Drive a process to its end; a step for each turn."""
    for _ in range(MOST_STEPS):
        yield
        if play.is_closed:
            return
        jobs = list(play.execution.activities)
        if random.random() < 0.2:
            disturb(play, random)
        elif jobs:
            play.trigger(play.element_of(random.choice(jobs)))
        elif play.execution.timers:
            play.fire()
        else:
            play.resolve_incident()
    play.cancel()


def make_straight(seed: int) -> tuple[_Play, list[bytes]]:
    """A straight run, and its state after each turn."""
    random = Random(seed)
    xml, variables, _ = make_process(seed, random.randint(1, 8))
    play = _Play(compile_xml(xml), variables)
    states = []
    for _ in drive_with_disturbances(play, random):
        states.append(encode_state(play.program.state))
        check_rest(play)
    assert play.is_closed, f"seed {seed}"
    return play, states


def retell(play: PlayedProcess, told: list[Told], between: Callable[[_Retold], ProcessProgram]) -> Iterator[bytes]:
    """Tell another execution the same, with another program after each turn; its state after each."""
    opening = told[0][1][0]
    assert isinstance(opening, envelopes.Start)
    again = _Retold(play.process, start=opening)
    yield encode_state(again.program.state)
    for now, arrived in told[1:]:
        again.program = between(again)
        again.now = now
        again.tell(*arrived)
        yield encode_state(again.program.state)


def rebuild(play: PlayedExecution) -> ProcessProgram:
    """A program that took the whole history."""
    program = play.make_program()
    assert program.apply(play.history) is None
    return program


def restore(play: PlayedExecution) -> ProcessProgram:
    """A program that took a snapshot."""
    program, body = play.make_program(), play.program.take_snapshot()
    assert body is not None
    assert program.restore_snapshot(body, play.program.snapshot_schema)
    return program


@pytest.mark.parametrize("seeds", list_batches(60), ids=str)
def test_R2_crash_after_each_event_leads_to_the_same_states(seeds: range) -> None:
    for seed in seeds:
        play, states = make_straight(seed)

        assert list(retell(play, play.told, rebuild)) == states, f"seed {seed}"


@pytest.mark.parametrize("seeds", list_batches(60), ids=str)
def test_R2_snapshot_after_each_turn_leads_to_the_same_states(seeds: range) -> None:
    for seed in seeds:
        play, states = make_straight(seed)

        assert list(retell(play, play.told, restore)) == states, f"seed {seed}"


@pytest.mark.parametrize("seeds", list_batches(60), ids=str)
def test_R2_other_batches_lead_to_the_same_states(seeds: range) -> None:
    for seed in seeds:
        play, states = make_straight(seed)
        ends = list(choose_batches(play.told, states, Random(seed + 1)))
        told = [
            (play.told[end][0], tuple(one for _, arrived in play.told[begin + 1 : end + 1] for one in arrived))
            for begin, end in pairwise([-1, *ends])
        ]

        batched = list(retell(play, told, rebuild))

        assert batched == [states[end] for end in ends], f"seed {seed}"


def choose_batches(told: list[Told], states: list[bytes], random: Random) -> Iterator[int]:
    """The places at which batches end. What comes in one batch comes at one time, and is not about what the batch began."""
    yield 0
    begin, known = 0, msgspec.json.decode(states[0])["last_number"]
    for place in range(1, len(told)):
        now, arrived = told[place]
        is_later = place - begin > 1 and now != told[place - 1][0]
        is_about_batch = any(getattr(one, "number", 0) > known for one in arrived)
        if place - begin > 1 and (is_later or is_about_batch or random.random() < 0.3):
            yield place - 1
            begin, known = place - 1, msgspec.json.decode(states[place - 1])["last_number"]
    if len(told) > 1:
        yield len(told) - 1


@pytest.mark.parametrize("seeds", list_batches(30), ids=str)
def test_R2_snapshot_and_the_history_since_give_the_present_state(seeds: range) -> None:
    for seed in seeds:
        play, states = make_straight(seed)
        at = Random(seed).randrange(len(play.history))

        early = play.make_program()
        assert early.apply(play.history[: at + 1]) is None
        body = early.take_snapshot()
        late = play.make_program()
        assert body is not None
        assert late.restore_snapshot(body, early.snapshot_schema)
        assert late.apply(play.history[at + 1 :]) is None

        assert encode_state(late.state) == states[-1], f"seed {seed}"


@pytest.mark.parametrize("seeds", list_batches(30), ids=str)
def test_R2_waits_are_what_a_loaded_execution_has_open(seeds: range) -> None:
    for seed in seeds:
        play, _ = make_straight(seed)
        at = Random(seed).randrange(len(play.history))
        opening = play.told[0][1][0]
        assert isinstance(opening, envelopes.Start)

        loaded = Execution.register("default", opening, BEGIN)
        fold(loaded, play.history[: at + 1])
        program = play.make_program()
        program.apply(play.history[: at + 1])

        opened = {*loaded.activities, *loaded.timers, *loaded.children, *loaded.tasks, *loaded.subscriptions}
        is_closed = at == len(play.history) - 1
        awaited = {*program.state.waits, *([program.state.yielding] if program.state.yielding else [])}
        assert is_closed or awaited == {one for one in opened if one not in _cancelling(loaded)}, f"seed {seed}"
        assert is_closed or program.state.incidents.keys() == loaded.incidents.keys(), f"seed {seed}"


def _cancelling(execution: Execution) -> set[int]:
    return {number for number, one in execution.activities.items() if one.is_cancelling}
