#!/usr/bin/env bash
# Random histories of local timers beside their naive twin, a hundred million operations or as many
# as asked for: some minutes. The gate runs a few hundred thousand of them with the other tests.
# Usage: ci/local.sh [OPERATIONS]
. "$(dirname "$0")/lib.sh"

operations=${1:-100000000}
# About 132 operations a history; the test prints their number.
TICKLESS_HISTORIES=$((operations / 130)) TICKLESS_RUN=${TICKLESS_RUN:-$(git rev-parse HEAD)} \
  cargo test --locked --release -p tickless-core --test all -- \
  --exact local::histories::local_histories_match_a_list --nocapture
