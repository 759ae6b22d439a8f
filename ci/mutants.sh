#!/usr/bin/env bash
# Runs cargo-mutants on the pure code: it changes arithmetic, comparisons and results one at a time,
# and a test must fail each time. ci/mutations.sh breaks orderings and protocols, from lists written
# by hand. Takes hours. In target/mutants/ and target/mutants-tool/, `missed.txt` lists the
# mutations that no test caught.
# Usage: ci/mutants.sh [--shard K/N] [FILE]...   All pure files by default, or the K-th of N parts.
. "$(dirname "$0")/lib.sh"

command -v cargo-mutants >/dev/null || timeout 1200 cargo install --locked cargo-mutants
shard=()
if [ "${1:-}" = --shard ]; then
  shard=(--shard "$2")
  shift 2
fi

# mutants OPTION... -- FILE...: runs cargo-mutants on the files.
mutants() {
  local options=() file
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  for file in "$@"; do options+=(--file "$file"); done
  cargo mutants --timeout 120 "${shard[@]}" "${options[@]}"
}

if [ $# -gt 0 ]; then
  mutants --output target/mutants -- "$@"
  exit
fi
status=0
mutants --test-package tickless-core --output target/mutants -- \
  'timers/tickless-core/src/bandwidth/**/*.rs' \
  timers/tickless-core/src/bases/{decide,device,expiry,expiry_thread,firing,pending,start}.rs \
  'timers/tickless-core/src/clock/*.rs' \
  'timers/tickless-core/src/queues/**/*.rs' \
  'timers/tickless-core/src/local/**/*.rs' \
  'timers/tickless-core/src/rearm/*.rs' \
  'timers/tickless-core/src/time/*.rs' \
  timers/tickless-core/src/{histogram,local,periodic,phase,rearm,state}.rs || status=$?
# Mutations of these files run the tests of their own crates.
mutants --output target/mutants-tool -- \
  'timers/tickless/src/{stats,virtual_time}/*.rs' \
  timers/tickless/src/{clock_timer,periodic,virtual_time}.rs \
  timers/tickless/src/platform/{manual_clock,wakeup,watch,watcher}.rs \
  timers/tickless/src/timer/{counters,frame,notes,waits,wakers}.rs \
  timers/tickless-capi/src/{one_thread,sized,status}.rs \
  'lab/tickless-trace/src/**/*.rs' \
  'lab/tickless-lab/src/doctor/**/*.rs' \
  'lab/tickless-lab/src/studies/*/doctor.rs' \
  'lab/tickless-lab/src/report/**/*.rs' \
  lab/tickless-lab/src/latency/{plan,row,tally}.rs \
  lab/tickless-cli/src/{manual,output}.rs \
  lab/tickless-machine/src/{coherence,cost,order,power,spec}.rs || status=$?
exit $status
