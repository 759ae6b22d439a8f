#!/usr/bin/env bash
# The long forms of attacks whose short forms are tests of the gate: the barrier of the biased lock
# on real hardware (10^9 rounds; run it where two CPUs are free), and random histories with exact
# accounts, among them deferred expiry with expiry threads that are relieved.
# Usage: ci/attacks.sh [SECONDS]    600 by default, for each of the attacks that take any time.
. "$(dirname "$0")/lib.sh"

TICKLESS_LITMUS_ROUNDS=1000000000 cargo test --locked --release -p tickless --lib -- \
  --exact platform::membarrier::tests::one_of_two_threads_sees_the_others_store --nocapture
bash ci/soak.sh "${1:-600}"
