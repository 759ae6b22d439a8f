#!/usr/bin/env bash
# Endurance: one process runs random operations from many threads and from callbacks, ends threads
# with timers in thread-locals, and forks children. Fails if an arming does not end exactly once, or
# if memory grows. The tests of the gate run two seconds of it.
# Usage: ci/soak.sh [SECONDS]    An hour by default. TICKLESS_SEED=N repeats a run's choices.
. "$(dirname "$0")/lib.sh"

TICKLESS_RUN=${TICKLESS_RUN:-$(date +%s)} TICKLESS_SOAK_SECONDS=${1:-3600} \
  cargo test --locked --release -p tickless --test stress -- --exact soak::endurance --nocapture
