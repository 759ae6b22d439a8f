#!/usr/bin/env bash
# Runs the pointer code of the core, the library and the C interface under Miri, which detects
# invalid aliasing, dangling pointers, uninitialised memory and data races. Miri is about a hundred
# times slower, so tests run less work under it; tests that need system calls which it does not
# support are left out. If Miri is unavailable, the script prints SKIPPED and passes.
# Usage: ci/miri.sh [SEEDS]   The gate runs each test with one schedule. With SEEDS, such as 64 or
# 16..32, the tests of the library and of the C interface run with each of these schedules.
. "$(dirname "$0")/lib.sh"

use_nightly miri rust-src || { skip miri "there is no nightly toolchain with miri" && exit 0; }
if ! cargo "+$NIGHTLY" miri setup; then
  skip miri "its standard library cannot be built here (see above)"
  exit 0
fi
seeds=${1:-}
case $seeds in
  "" | *..*) ;;
  *) seeds=0..$seeds ;;
esac
miri() {
  MIRIFLAGS="$1" timeout "${limit:-1800}" cargo "+$NIGHTLY" miri test "${@:2}"
}
# The library's drivers make system calls and read the clock, and the crate for system calls makes
# pointers from integers.
# Isolated, Miri has a clock of its own, which counts its steps: no test fails because the machine
# is busy. Files are refused.
host="-Zmiri-permissive-provenance -Zmiri-isolation-error=hide -Zmiri-ignore-leaks"
if [ -z "$seeds" ]; then
  # Tests of one thread have one schedule.
  miri "-Zmiri-strict-provenance" -p tickless-core --lib
  miri "-Zmiri-strict-provenance" -p tickless-core --test all -- queue:: local::future::
  miri "$host" -p tickless --test all -- deadlines::
else
  host+=" -Zmiri-many-seeds=$seeds"
  limit=0
fi
miri "$host" -p tickless --lib
# Futures, timers in the program's memory, and threads that wait for callbacks, with real drivers
# that sleep and are woken.
miri "$host" -p tickless --test all -- future:: cancel_sync:: embed:: identity:: waking:: \
  deferred::an_offline_base_under_load_loses_no_timer deadlines::deadlines_hold_in_real_time
miri "$host" -p tickless-capi --lib --test ends
