#!/usr/bin/env bash
# Endurance: an hour of random operations from many threads and from callbacks, in one process;
# threads that end with timers in thread-locals, children that are forked amid it. Fails if an
# arming has no end or two, or if memory grows. Not part of the gate, whose tests do two seconds
# of it.
# Usage: ci/soak.sh [SECONDS]    TICKLESS_SEED=N repeats a run's choices.
. "$(dirname "$0")/lib.sh"

TICKLESS_RUN=${TICKLESS_RUN:-$(date +%s)} TICKLESS_SOAK_SECONDS=${1:-3600} \
  cargo test --locked --release -p tickless --test stress -- --exact soak::endurance --nocapture
