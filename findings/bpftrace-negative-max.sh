#!/usr/bin/env bash
# bpftrace 0.17.0 (Debian bookworm): `max` of values which are all negative is printed neither as
# a map of its own nor as a key of a map, as if there had been no value; `min` and `avg` of the same
# values are right. So a timer that is always early is missing from a table of greatest latenesses.
# Guessed before the run: -5 in each place.
# Needs root, as all programs for bpftrace do.
. "$(dirname "$0")/lib.sh"
debian bpftrace=0.17.0-1 libbpfcc libbpf1 libclang1-14 libllvm14 libdw1 libelf1
bpftrace -e 'BEGIN {
  @max = max(-5); @min = min(-5); @avg = avg(-5); @zero = max(0);
  @late["early"] = max(-5); @late["late"] = max(7);
  exit()
}' 2>/dev/null | grep '^@' >"$work/seen"
seen <<'SEEN'
@avg: -5
@late[late]: 7
@min: -5
@zero: 0
SEEN
