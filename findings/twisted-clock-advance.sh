#!/usr/bin/env bash
# Twisted 26.10.0: `Clock.advance(10)` sets the time to the end before it makes the calls that are
# due, so a call that schedules itself again after 1 s is made once, at 10 s, and not ten times.
# `Clock.pump` with ten steps makes ten.
# Guessed before the run: each call at its own time, as a clock would make them.
. "$(dirname "$0")/lib.sh"
python Twisted==26.10.0 <<'PYTHON'
from twisted.internet.task import Clock


def calls(move):
    clock = Clock()
    seen = []

    def call():
        seen.append(clock.seconds())
        clock.callLater(1, call)

    clock.callLater(1, call)
    move(clock)
    return seen


print("advance:", calls(lambda clock: clock.advance(10)))
print("pump:", calls(lambda clock: clock.pump([1] * 4)))
PYTHON
seen <<'SEEN'
advance: [10.0]
pump: [1.0, 2.0, 3.0, 4.0]
SEEN
