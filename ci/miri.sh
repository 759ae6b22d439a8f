#!/usr/bin/env bash
# Runs the pointer code of the core, the library and the C interface under Miri, which detects
# invalid aliasing, dangling pointers, uninitialised memory and data races. Miri is about a hundred
# times slower, so tests run less work under it; tests that need system calls which it does not
# support are left out. If Miri is unavailable, the script prints SKIPPED and passes.
# Usage: ci/miri.sh [SEEDS]   Runs each test of the library with SEEDS schedules; the gate with 1.
. "$(dirname "$0")/lib.sh"

use_nightly miri rust-src || { skip miri "there is no nightly toolchain with miri" && exit 0; }
if ! cargo "+$NIGHTLY" miri setup; then
  skip miri "its standard library cannot be built here (see above)"
  exit 0
fi
miri() {
  MIRIFLAGS="$1" timeout 1800 cargo "+$NIGHTLY" miri test "${@:2}"
}
miri "-Zmiri-strict-provenance" -p tickless-core --lib
miri "-Zmiri-strict-provenance" -p tickless-core --test all -- queue:: local::future::
# The library's drivers make system calls and read the clock, and the crate for system calls makes
# pointers from integers.
# Isolated, Miri has a clock of its own, which counts its steps: no test fails because the machine
# is busy. Files are refused.
host="-Zmiri-permissive-provenance -Zmiri-isolation-error=hide -Zmiri-ignore-leaks"
[ "${1:-1}" -le 1 ] || host+=" -Zmiri-many-seeds=0..$1"
miri "$host" -p tickless --lib
# Futures, and threads that wait for callbacks, with real drivers that sleep and are woken.
miri "$host" -p tickless --test all -- future:: deadlines:: cancel_sync:: identity::sleeps_in \
  waking:: deferred::an_offline_base_under_load_loses_no_timer
miri "$host" -p tickless-capi --lib --test ends
