#!/usr/bin/env bash
# aiolimiter 1.3.0: a request waits until all that it asks for is free at once, and what is free
# goes to any later request that fits. Of a limiter with 10 places a second, one for 8 that came
# first is served after all 12 for 1 that came later; as long as small ones come, it waits.
# Guessed before the run: in the order of arrival.
. "$(dirname "$0")/lib.sh"
python aiolimiter==1.3.0 <<'PYTHON'
import asyncio

from aiolimiter import AsyncLimiter


async def main():
    limiter = AsyncLimiter(10, 1)
    await limiter.acquire(10)
    order = []

    async def request(amount):
        await limiter.acquire(amount)
        order.append(amount)

    tasks = []
    for amount in [8] + [1] * 12:
        tasks.append(asyncio.create_task(request(amount)))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    print("asked first: 8; served:", *order)


asyncio.run(main())
PYTHON
seen <<'SEEN'
asked first: 8; served: 1 1 1 1 1 1 1 1 1 1 1 1 8
SEEN
