#!/usr/bin/env bash
# Runs tests of the library's threads and futures and of the C interface under ThreadSanitizer, with
# a standard library built for it. ThreadSanitizer supports neither fences nor membarrier(2), so
# locks are built without their bias towards one thread (--cfg tickless_tsan); the models check the
# bias (ci/models.sh). Without a nightly toolchain and its sources, the script prints SKIPPED and
# passes.
# Usage: ci/tsan.sh [FILTER]...   Only tests whose names contain one of the words.
# TICKLESS_SECONDS is the duration of each random history, 5 by default. Longer runs explore more
# schedules (TICKLESS_SECONDS=60 ci/tsan.sh identity).
. "$(dirname "$0")/lib.sh"

use_nightly rust-src || { skip tsan "there is no nightly toolchain with rust-src" && exit 0; }
host=$(rustc "+$NIGHTLY" -vV | sed -n 's/^host: //p')
filters=("$@")
[ ${#filters[@]} -gt 0 ] || filters=(cancel cancel_sync deferred future identity in_callbacks
  panics clock_timer periodic statistics)
export TICKLESS_SECONDS=${TICKLESS_SECONDS:-5}
export RUSTFLAGS="-Zsanitizer=thread --cfg tickless_tsan -Cdebuginfo=1"
export CARGO_TARGET_DIR=$PWD/target/tsan TSAN_OPTIONS="halt_on_error=1 history_size=4"
test=(cargo "+$NIGHTLY" test -Zbuild-std --target "$host")
timeout 1800 "${test[@]}" -p tickless --test all -- "${filters[@]}"
timeout 600 "${test[@]}" -p tickless --test stress -- deferred_expiry
timeout 600 "${test[@]}" -p tickless-capi --test ends
