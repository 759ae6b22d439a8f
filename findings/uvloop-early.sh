#!/usr/bin/env bash
# uvloop 0.23.0: `call_later` rounds to the nearest millisecond, so callbacks are early: a delay of
# 0.4 ms does not wait, one of 1.4 ms ends 0.4 ms too soon. asyncio's own loop rounds up.
# Guessed before the run: up, as asyncio does and libuv's users are advised to.
. "$(dirname "$0")/lib.sh"
python uvloop==0.23.0 <<'PYTHON'
import asyncio
import time

import uvloop


async def least(delay):
    """The shortest of 200 waits, in seconds less than the delay."""
    loop = asyncio.get_running_loop()
    early = 0.0
    for _ in range(200):
        start = time.monotonic()
        future = loop.create_future()
        loop.call_later(delay, future.set_result, None)
        await future
        early = max(early, delay - (time.monotonic() - start))
    return early


for delay in (0.0004, 0.0014):
    for name, run in ("asyncio", asyncio.run), ("uvloop", uvloop.run):
        print(f"{delay * 1e3} ms, {name}: more than 0.2 ms early: {run(least(delay)) > 0.0002}")
PYTHON
seen <<'SEEN'
0.4 ms, asyncio: more than 0.2 ms early: False
0.4 ms, uvloop: more than 0.2 ms early: True
1.4 ms, asyncio: more than 0.2 ms early: False
1.4 ms, uvloop: more than 0.2 ms early: True
SEEN
