#!/usr/bin/env bash
# Counts the instructions of the hot operations, from Rust and from C. Fails if one exceeds its
# expected count by more than a tenth. Needs valgrind, and a C compiler for the calls from C; prints
# those of libev beside them if that is installed. `ci/counts.sh c` counts the calls from C only.
. "$(dirname "$0")/lib.sh"
command -v valgrind >/dev/null || { skip "instruction counts" "valgrind is not installed"; exit 0; }
if [ "${1:-}" != c ]; then
  cargo bench --locked -p tickless --bench instructions
  cargo bench --locked -p tickless --features tokio-time --bench instructions -- runtime
fi

command -v cc >/dev/null || { skip "counts of calls from C" "there is no C compiler"; exit 0; }
out=$PWD/timers/bench/target/calls
timers/tickless-capi/install.sh --prefix "$out" >/dev/null
build() { cc -std=c11 -O2 -Wall -I"$out/include" timers/bench/foreign/c/calls.c "$@"; }
build -o "$out/tickless" -L"$out/lib" -Wl,-rpath,"$out/lib" -ltickless
# Prints the instructions of an operation that function $2 of program $1 repeats 1,000 times.
instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
    --toggle-collect="$2" "$out/$1" "$2" 2>&1 |
    awk '/Collected :/ && $4 > 0 { printf "%.0f\n", $4 / 1000; found = 1 } END { exit !found }'
}
loop=$(instructions tickless nothing)
failed=
count() {
  local took least=
  # The driver may have taken the lock's bias away: see the counts of Rust.
  for _ in 1 2 3 4 5; do
    took=$(($(instructions "$1" "$2") - loop))
    [ -n "$least" ] && [ "$took" -ge "$least" ] || least=$took
    [ -z "${3:-}" ] || [ $((least * 10)) -gt $(($3 * 11)) ] || break
  done
  printf '%-26s %6s instructions%s\n' "C: $2" "$least" "${3:+, should take $3}"
  [ -z "${3:-}" ] || [ $((least * 10)) -le $(($3 * 11)) ] || failed=1
}
count tickless local_pair 107
count tickless local_push_out 52
count tickless local_pair_read 153
count tickless local_push_out_read 98
count tickless shared_pair 256
count tickless shared_pair_from 224
count tickless shared_push_out 89
count tickless shared_push_out_from 57
if build -DLIBEV -o "$out/libev" -lev 2>/dev/null; then
  count libev libev_pair
  count libev libev_push_out
fi
[ -z "$failed" ] || { echo "a call from C takes over a tenth more than it should" >&2; exit 1; }
