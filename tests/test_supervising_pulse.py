"""When a server counts as dead, and how long the next one waits: decisions by time alone, without any waiting."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from modes_actor.supervising.pulse import Beat, Pulse
from modes_actor.supervising.timing import Backoff, Timing

REPEATABLE = settings(derandomize=True, database=None, deadline=None)
TIMING = Timing(interval=30, timeout=5, failures=3)


def beats(pulse: Pulse, *, until: float, can_ask: bool = True) -> list[tuple[float, Beat]]:
    """What it decides, and when, if it is woken whenever it is due and nothing else happens."""
    found: list[tuple[float, Beat]] = []
    now = 0.0
    while pulse.due <= until:
        now = max(now, pulse.due)
        beat = pulse.wake(now, can_ask=can_ask)
        found.append((now, beat))
        if beat is Beat.DEAD:
            break
    return found


def test_a_server_that_never_answers_is_dead_after_so_many_pings() -> None:
    """One ping each interval, each missed after its timeout."""
    expected = [
        (30, Beat.PING),
        (35, Beat.MISSED),
        (60, Beat.PING),
        (65, Beat.MISSED),
        (90, Beat.PING),
        (95, Beat.DEAD),
    ]
    assert beats(Pulse(TIMING, first_ping=30), until=1000) == expected


def test_the_usual_limits_are_those_of_the_reference() -> None:
    """A ping every 30 seconds, 5 seconds for its answer, 5 failures, 100 ms to 10 s before a restart."""
    pulse = Pulse(Timing(), first_ping=30)
    found = beats(pulse, until=1000)
    assert (found[-1], len(found)) == ((155, Beat.DEAD), 10)


def test_an_answer_is_a_sign_of_life() -> None:
    """Then the ping is not missed, and the next one is sent at its time."""
    pulse = Pulse(TIMING, first_ping=30)
    assert pulse.wake(30, can_ask=True) is Beat.PING
    pulse.heard()
    assert beats(pulse, until=60) == [(35, Beat.NOTHING), (60, Beat.PING)]
    assert pulse.failures == 0


def test_an_answer_that_comes_too_late_forgives_all_failures() -> None:
    """Only pings that are missed one after the other count."""
    pulse = Pulse(TIMING, first_ping=30)
    assert [beat for _, beat in beats(pulse, until=66)] == [Beat.PING, Beat.MISSED, Beat.PING, Beat.MISSED]
    assert pulse.failures == 2
    pulse.heard()
    assert pulse.failures == 0
    assert beats(pulse, until=1000)[-1] == (155, Beat.DEAD)


def test_before_the_conversation_is_open_nothing_is_asked_and_nothing_missed() -> None:
    """A server may refuse a ping then; it is judged by its process."""
    pulse = Pulse(TIMING, first_ping=30)
    assert beats(pulse, until=100, can_ask=False) == [(30, Beat.NOTHING), (60, Beat.NOTHING), (90, Beat.NOTHING)]


def test_while_the_client_does_not_read_no_ping_is_sent() -> None:
    """Its answer would not be seen."""
    pulse = Pulse(TIMING, first_ping=30)
    pulse.block()
    assert beats(pulse, until=61) == [(30, Beat.SUSPENDED), (60, Beat.SUSPENDED)]
    pulse.unblock(70)
    assert beats(pulse, until=95) == [(90, Beat.PING), (95, Beat.MISSED)]


def test_a_ping_under_way_is_not_missed_while_the_client_does_not_read() -> None:
    """And it has its whole time again once the server is read."""
    pulse = Pulse(TIMING, first_ping=30)
    assert pulse.wake(30, can_ask=True) is Beat.PING
    pulse.block()
    assert [beat for _, beat in beats(pulse, until=80)] == [Beat.SUSPENDED] * 10
    pulse.unblock(82)
    assert beats(pulse, until=87)[0] == (87, Beat.MISSED)


def test_a_timeout_that_is_longer_than_the_interval_has_one_ping_under_way_at_a_time() -> None:
    """The next follows when the last is decided."""
    pulse = Pulse(Timing(interval=1, timeout=3, failures=2), first_ping=1)
    assert beats(pulse, until=100) == [(1, Beat.PING), (4, Beat.MISSED), (4, Beat.PING), (7, Beat.DEAD)]


EVENTS = st.lists(
    st.tuples(st.floats(min_value=0, max_value=40), st.sampled_from(["wake", "heard", "block", "unblock"])), max_size=80
)


@REPEATABLE
@given(events=EVENTS)
def test_no_server_dies_that_has_answered_or_could_not_be_heard(events: list[tuple[float, str]]) -> None:
    """Whatever happens in whichever order: between the first ping of a fatal row and its end there was no answer."""
    pulse = Pulse(TIMING, first_ping=30)
    now, pings, last_answer = 0.0, list[float](), -math.inf
    for pause, event in events:
        now += pause
        if event == "heard":
            pulse.heard()
            last_answer = now
            pings.clear()
        elif event == "block":
            pulse.block()
        elif event == "unblock":
            pulse.unblock(now)
        else:
            beat = pulse.wake(now, can_ask=True)
            if beat is Beat.PING:
                assert not pings or now - pings[-1] >= TIMING.interval
                pings.append(now)
            if beat in (Beat.PING, Beat.MISSED, Beat.DEAD):
                assert not pulse.is_blocked
            assert (beat is Beat.DEAD) == (beat in (Beat.MISSED, Beat.DEAD) and pulse.failures >= TIMING.failures)
            if beat is Beat.DEAD:
                assert len(pings) >= TIMING.failures
                assert last_answer < pings[-TIMING.failures]
                return
        assert pulse.failures <= len(pings)


def test_the_wait_before_a_restart_doubles_up_to_its_limit_and_begins_again() -> None:
    """From 100 ms to 10 s, and from 100 ms again once a server was healthy for a while."""
    backoff = Backoff(Timing().backoff_first, Timing().backoff_limit)
    assert [backoff.next() for _ in range(9)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    backoff.reset()
    assert [backoff.next(), backoff.next()] == [0.1, 0.2]


def test_a_first_wait_above_the_limit_is_the_limit() -> None:
    """However somebody sets the two."""
    assert Backoff(5, 2).next() == 2
