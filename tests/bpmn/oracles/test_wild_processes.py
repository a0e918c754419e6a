"""Random processes to which anything happens rest in consistent states: each wait is open, each open thing is awaited."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from holdfast.core import envelopes
from holdfast.core.bpmn_errors import make_bpmn_error_failure
from holdfast.core.failures import Failure
from holdfast.core.instants import SECOND
from holdfast.core.request_keys import RequestKey
from tests.bpmn.oracles.driving import list_batches
from tests.bpmn.oracles.wild_processes import CODES, make_wild
from tests.bpmn.support.consistency import check_open, check_rebuilt
from tests.bpmn.support.playing import PlayedProcess, compile_xml, encode

_MOST_TURNS = 40
_MOST_LONG_TURNS = 3
_MOST_ACTIVE = 30


class _Play(PlayedProcess):
    checks_each_turn = False


@pytest.mark.parametrize("seeds", list_batches(100), ids=str)
def test_R2_whatever_happens_waits_are_what_is_open(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        try:
            play = _Play(compile_xml(make_wild(seed)), {"n": random.randint(0, 4), "key": random.choice(["k", None])})
            long = 0
            for _ in range(_MOST_TURNS):
                long += bool(play.program.state.kept)
                if play.is_closed or long > _MOST_LONG_TURNS:
                    break
                happen(play, random)
                check_open(play)
                if len(play.program.state.active) < _MOST_ACTIVE:
                    check_rebuilt(play)
            if not play.is_closed:
                play.cancel()
            check_open(play)
        except BaseException:
            print(f"seed {seed}")  # to find it again
            raise


def make_error(code: str) -> Failure:
    """A BPMN error as a job or a child throws it."""
    return make_bpmn_error_failure(code, "", encode({"n": 9}))


def go_on(play: PlayedProcess) -> None:
    """The timer fires by which a long turn goes on."""
    play.tell(play.make_due(play.program.state.yielding))


def happen(play: PlayedProcess, random: Random) -> None:
    """Let anything happen that can."""
    numbers = list(play.program.state.waits)
    kind = random.randrange(12)
    if kind == 0:
        play.send_signal(random.choice(["m", "m2", "s", "keyed"]), random.choice([{"n": 2}, None, "no object"]))
    elif kind == 1:
        play.resolve_incident(None, random.choice([None, {"ready": True}, {"key": "k2"}, {"n": 3}]))
    elif kind == 2 and play.incidents:
        play.resolve_incident(random.choice(list(play.incidents)))
    elif kind == 3:
        play.set_variables({"n": random.randint(0, 5)}, random.choice([None, "1"]), local=random.random() < 0.5)
    elif kind == 4 and play.program.state.yielding:
        go_on(play)
    elif numbers:
        bring(play, random, random.choice(numbers))
    elif play.program.state.yielding:
        go_on(play)
    else:
        play.resolve_incident(None, {"ready": True, "key": "k"})


def bring(play: PlayedProcess, random: Random, number: int) -> None:
    """What an instance waits for comes, or fails."""
    execution = play.execution
    value = random.choice([{}, {"n": 1, "x": 2}, None, {"y": [1]}, 7])
    if number in execution.activities:
        match random.randrange(4):
            case 0:
                play.raise_in(number)
            case 1:
                play.raise_in(number, make_error(random.choice(CODES)))
            case _:
                play.return_job(number, value)
    elif number in execution.timers:
        play.now = max(play.now, execution.timers[number])
        play.tell(play.make_due(number))
    elif number in execution.subscriptions:
        if random.random() < 0.1:
            play.tell(envelopes.SubscriptionRefused(number=number, holder="somebody"))
        else:
            play.tell(play.make_trigger(number, value))
    elif number in execution.children:
        bring_child(play, random, number)
    else:
        task_id = execution.tasks[number].event.task_id
        request = RequestKey("task", f"{number}:{len(play.told)}", play.now + 3600 * SECOND)
        done = envelopes.TaskCompleted(number=number, task_id=task_id, value=encode({"n": 4}), by="ann", request=request)
        play.tell(done)


def bring_child(play: PlayedProcess, random: Random, number: int) -> None:
    """A child ends, or escalates."""
    child = play.execution.children[number].execution_id
    closed = envelopes.ChildClosed(number=number, execution_id=child, result=encode({"n": 1}))
    match random.randrange(4):
        case 0:
            closed = msgspec.structs.replace(closed, result=None, cancelled=True)
        case 1:
            closed = msgspec.structs.replace(closed, result=None, failure=make_error(random.choice(CODES)))
        case 2:
            code = random.choice(["X1", "X2"])
            play.tell(envelopes.ChildEscalated(number=number, execution_id=child, code=code, value=encode({})))
            return
        case _:
            pass
    play.tell(closed)
