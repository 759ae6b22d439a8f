#!/usr/bin/env bash
# rt-tests 2.4 (Debian 2.4-1): cyclictest reads the digits of a number and drops what follows. An
# interval of 1ms is 1 us, 1k loops are one, a break at 1ms is one at 1 us, and a run of 1.5 s takes
# 1 s. It says nothing; only the column "I:" shows the interval. Its own `-D` knows the suffixes m,
# h and d.
# Guessed before the run: an error for a suffix that it does not know.
. "$(dirname "$0")/lib.sh"
debian rt-tests=2.4-1 libnuma1
cycles() { sed -n 's/.* I:\([0-9]*\) C: *\([0-9]*\) .*/interval \1 us, \2 cycles/p'; }
{
  echo "-i 1ms -l 50: $(cyclictest -q -i 1ms -l 50 2>/dev/null | cycles)"
  echo "-i 1000 -l 1k: $(cyclictest -q -i 1000 -l 1k 2>/dev/null | cycles)"
  echo "-b 1ms: $(cyclictest -q -i 1000 -l 50 -b 1ms 2>/dev/null | cycles)"
  begun=$(date +%s%N)
  cyclictest -q -i 1000 -D 1.5 >/dev/null 2>&1
  echo "-D 1.5: shorter than 1.4 s: $((($(date +%s%N) - begun) / 1000000 < 1400))"
} >"$work/seen"
seen <<'SEEN'
-i 1ms -l 50: interval 1 us, 50 cycles
-i 1000 -l 1k: interval 1000 us, 1 cycles
-b 1ms: interval 1000 us, 1 cycles
-D 1.5: shorter than 1.4 s: 1
SEEN
