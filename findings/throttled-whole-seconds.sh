#!/usr/bin/env bash
# throttled-py 3.5.0: its default, the token bucket, and its leaking bucket read the time of day in
# whole seconds. With 10 a second and a burst of 10, they allow 20 requests in the 0.6 s around the
# change of a second, then none for the rest of it; the default 10 come back all at once. Its GCRA,
# with the same quota, allows one each 100 ms.
# Guessed before the run: one more each 100 ms.
. "$(dirname "$0")/lib.sh"
python throttled-py==3.5.0 <<'PYTHON'
import time

from throttled import Throttled, rate_limiter

for name in ["token_bucket", "leaking_bucket", "gcra"]:
    quota = rate_limiter.per_sec(10, burst=10)
    throttle = Throttled(key="key", using=name, quota=quota)
    time.sleep(1 - (time.time() + 0.3) % 1)
    end = time.monotonic() + 0.6
    allowed = 0
    while time.monotonic() < end:
        allowed += not throttle.limit().limited
        time.sleep(0.001)
    print(f"{name}: 20 requests in 0.6 s: {allowed >= 20}")
PYTHON
seen <<'SEEN'
token_bucket: 20 requests in 0.6 s: True
leaking_bucket: 20 requests in 0.6 s: True
gcra: 20 requests in 0.6 s: False
SEEN
