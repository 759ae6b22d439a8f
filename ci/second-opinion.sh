#!/usr/bin/env bash
# Checks figures of the program against a second source, each over the same seconds: `late` against
# `perf sched timehist` for a throttled service and beside a real-time competitor, the doctor's
# throttled periods against the kernel's counters of the group, `top` against bpftrace, and
# `latency` against cyclictest. Prints a table, and fails if a figure is too far off. A tool that is
# not installed leaves its rows out, and is named.
#
# Needs root, perf, bpftrace and rt-tests, and the cpu controller of either version of control
# groups. A busy machine is no obstacle, as both sources see the same.
# Usage: ci/second-opinion.sh [SECONDS]   5 s for each row, 1 minute in all
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || { skip ci/second-opinion.sh "recording needs root"; exit 0; }
cargo build --locked -q -p tickless-cli
tickless=$(cargo metadata --format-version 1 --no-deps |
  sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/debug/tickless
exec python3 ci/second-opinion.py "$tickless" "${1:-5}"
