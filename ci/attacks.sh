#!/usr/bin/env bash
# Long runs of stress tests of which the gate runs short ones: the barrier of the biased lock on
# real hardware (10^9 rounds; needs two idle CPUs), and random histories that account for every
# arming, including deferred expiry with expiry threads that are replaced.
# Usage: ci/attacks.sh [SECONDS]    600 by default, for each test that runs for a given time.
. "$(dirname "$0")/lib.sh"

TICKLESS_LITMUS_ROUNDS=1000000000 cargo test --locked --release -p tickless --lib -- \
  --exact platform::membarrier::tests::one_of_two_threads_sees_the_others_store --nocapture
bash ci/soak.sh "${1:-600}"
