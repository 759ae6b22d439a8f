#!/usr/bin/env bash
# Runs the benches, which the gate runs only briefly. They print figures and assert results: a
# failure means a wrong result, not a slow one.
# Usage: ci/benches.sh [--quick] [--repetitions N] [BENCH]...
#   instructions held_up   our own operations; `taskset -c 1` is best
#   calls      instructions of calls from C, beside libev's and those from Rust; needs valgrind
#              and libev-dev
#   peers      comparison with other Rust crates; rewrites their tables of the page; 3 minutes
#   foreign    peers, and libraries in C, C++, Go and Java, which it builds first; 6 minutes
#   futures    comparison with tokio's futures, and a web server; rewrites its tables; 3 minutes
#   all        foreign, futures: the whole page; 10 to 12 minutes on two CPUs
# Without a name: our own operations, and `all`. The page is docs/book/src/performance.md. Benches
# that rewrite it need an idle machine and all CPUs. --quick uses fewer timers and operations and
# does not change the page; --repetitions sets the number of samples of each figure. `futures` opens
# as many connections as the limit of open files allows.
. "$(dirname "$0")/lib.sh"

page=docs/book/src/performance.md
options=()
while [[ ${1:-} == --* ]]; do
  case $1 in
    --quick) options+=(--quick) && page='' ;;
    --repetitions) options+=(--repetitions "$2") && shift ;;
    *) echo "there is no option $1; see the usage in $0" >&2 && exit 1 ;;
  esac
  shift
done
[ $# -gt 0 ] || set -- instructions held_up all

if [ -z "$page" ]; then
  mkdir -p timers/bench/target/quick
  page=timers/bench/target/quick/performance.md
  cp docs/book/src/performance.md "$page"
fi
program=timers/bench/target/release/tickless-bench
build() { cargo build --locked --release --manifest-path timers/bench/Cargo.toml; }
# Rewrites the tables of section $1, with the other arguments as options.
section() {
  local name=$1
  shift
  "$program" --section "$name" --markdown "$page" "${options[@]}" "$@"
}
foreign() {
  timers/bench/foreign/build.sh timers/bench/target/foreign
  section operations --foreign timers/bench/target/foreign
}
# Counts the instructions of each call from C, its callees included, with 100 timers pending. There
# are so many calls that the first ones, until the thread owns the bias of its base's lock, do not
# matter.
calls() {
  local out=timers/bench/target/calls kind libraries name operations=500000
  timers/tickless-capi/install.sh --prefix "$PWD/$out/usr"
  for name in tickless tickless_local libev; do
    libraries=("$out/usr/lib/libtickless.a" -lgcc_s -lm -ldl)
    [ "$name" != libev ] || libraries=(-lev)
    g++ -std=c++17 -O2 -pthread -I"$out/usr/include" "timers/bench/foreign/cpp/$name.cpp" \
      -o "$out/$name" "${libraries[@]}"
    for kind in pairs push; do
      echo sample | ONE_BASE=1 valgrind -q --tool=callgrind --callgrind-out-file="$out/counts" \
        "$out/$name" "$kind" 100 "$operations" >/dev/null 2>&1
      # A sample of pushes makes them twice, and the pending timers are armed first.
      callgrind_annotate --inclusive=yes --threshold=100 "$out/counts" |
        awk -v kind="$kind" -v count="$operations" '
          match($0, /:(tickless|ev)_(timer|local)_(start|start_from|stop|cancel|again) /) {
            name = substr($0, RSTART + 1, RLENGTH - 2)
            gsub(/,/, "", $1)
            calls = kind == "push" ? 2 * count : count
            if ($1 + 0 > calls) printf "%-5s %-26s %4.0f instructions\n", kind, name, $1 / calls
          }'
    done
  done
  for name in local_p timeout_p; do
    cargo bench --locked -p tickless --bench instructions -- "$name"
  done
}

for bench in "$@"; do
  case $bench in
    instructions | held_up) cargo bench --locked -p tickless --bench "$bench" ;;
    calls) calls ;;
    peers) build && section operations ;;
    foreign) build && foreign ;;
    futures) build && section futures ;;
    all) build && foreign && section futures ;;
    *) echo "there is no bench $bench; see the usage in $0" >&2 && exit 1 ;;
  esac
done
