#!/usr/bin/env bash
# gevent 26.9.0: `spawn_later`, `joinall` and `wait` count from the time at which the loop last
# woke, not from the call. After 200 ms of work, a timeout of 100 ms is over at once, before the
# greenlets that it waits for have run. `sleep`, `Timeout`, `Event.wait` and `Greenlet.join` count
# from the call.
# Guessed before the run: all of them wait 100 ms from the call.
. "$(dirname "$0")/lib.sh"
python gevent==26.9.0 <<'PYTHON'
import time

import gevent
from gevent.event import Event


def timeout():
    try:
        with gevent.Timeout(0.1):
            gevent.sleep(10)
    except gevent.Timeout:
        pass


def sleeper():
    return gevent.spawn(gevent.sleep, 10)


calls = {
    "sleep": lambda: gevent.sleep(0.1),
    "Timeout": timeout,
    "Event.wait": lambda: Event().wait(0.1),
    "Greenlet.join": lambda: sleeper().join(0.1),
    "spawn_later": lambda: gevent.spawn_later(0.1, int).join(),
    "joinall": lambda: gevent.joinall([sleeper()], timeout=0.1),
    "wait": lambda: gevent.wait([sleeper()], timeout=0.1),
}
for name, call in calls.items():
    gevent.sleep(0.001)
    time.sleep(0.2)
    start = time.monotonic()
    call()
    print(f"{name}(0.1): at least 90 ms: {time.monotonic() - start >= 0.09}")
PYTHON
seen <<'SEEN'
sleep(0.1): at least 90 ms: True
Timeout(0.1): at least 90 ms: True
Event.wait(0.1): at least 90 ms: True
Greenlet.join(0.1): at least 90 ms: True
spawn_later(0.1): at least 90 ms: False
joinall(0.1): at least 90 ms: False
wait(0.1): at least 90 ms: False
SEEN
