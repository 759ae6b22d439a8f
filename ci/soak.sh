#!/usr/bin/env bash
# The randomised stress for long: 10^8 operations of every sort in five set-ups, with the accounts
# checked at the end. Takes a minute or two. Not part of the gate, whose tests do a fiftieth of it.
# Usage: ci/soak.sh [OPERATIONS]    TICKLESS_SEED=N repeats a run's choices.
. "$(dirname "$0")/lib.sh"

operations=${1:-100000000}
TICKLESS_STRESS_OPERATIONS=$((operations / 5)) \
  cargo test --locked --release -p tickless --test stress -- --nocapture
