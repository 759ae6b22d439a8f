#!/usr/bin/env bash
# Compares random histories of local timers with their naive twin. The gate runs a few hundred
# thousand operations with the other tests.
# Usage: ci/local.sh [OPERATIONS]   10^8 by default, which take some minutes.
. "$(dirname "$0")/lib.sh"

operations=${1:-100000000}
# A history has about 132 operations; the test prints their number.
TICKLESS_HISTORIES=$((operations / 130)) TICKLESS_RUN=${TICKLESS_RUN:-$(git rev-parse HEAD)} \
  cargo test --locked --release -p tickless-core --test all -- \
  --exact local::histories::local_histories_match_a_list --nocapture
