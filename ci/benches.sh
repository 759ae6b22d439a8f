#!/usr/bin/env bash
# Runs the benches, which the gate runs only briefly. They print figures and assert results: a
# failure means a wrong result, not a slow one.
# Usage: ci/benches.sh [--quick] [--repetitions N] [BENCH]...
#   instructions           our own operations; `taskset -c 1` is best
#   peers      comparison with other Rust crates; rewrites their tables of the page; 4 minutes
#   foreign    peers, and libraries in C, C++, Go and Java, which it builds first; 7 minutes
#   futures    comparison with tokio's futures, and a web server; rewrites its tables; 5 minutes
#   newcomer   counts the instructions of its first table for Rust; needs valgrind; 5 minutes
#   all        foreign, futures: the whole page; 12 to 15 minutes on two CPUs
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
[ $# -gt 0 ] || set -- instructions all

if [ -z "$page" ]; then
  mkdir -p timers/bench/target/quick
  page=timers/bench/target/quick/performance.md
  cp docs/book/src/performance.md "$page"
fi
program=timers/bench/target/release/tickless-bench
# The same program with tokio's alternative timers. The flag for them changes all of tokio.
twin=timers/bench/target/alternative
build() {
  cargo build --locked --release --manifest-path timers/bench/Cargo.toml
  RUSTFLAGS="--cfg tokio_unstable ${RUSTFLAGS:-}" cargo build --locked --release \
    --manifest-path timers/bench/Cargo.toml --target-dir "$twin"
}
# Rewrites the tables of section $1, with the other arguments as options.
section() {
  local name=$1
  shift
  "$program" --twin "$twin/release/tickless-bench" --section "$name" --markdown "$page" \
    "${options[@]}" "$@"
}
foreign() {
  timers/bench/foreign/build.sh timers/bench/target/foreign
  section operations --foreign timers/bench/target/foreign
}
# Prints the instructions of each operation of W15, with one base: under valgrind there are no
# restartable sequences from which to read the CPU.
newcomer() {
  local row column
  for row in 0 1 2 3 4; do
    for column in 0 1 2; do
      taskset -c 0 valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect='*newcomer::counted' "$program" --repeat "$row" "$column" 1000 2>&1 |
        awk '/Collected :/ { count = $4 / 1000 } !/^==/ { name = name $0 }
             END { if (name != "") printf "%6.0f  %s\n", count, name }'
    done
  done
}
for bench in "$@"; do
  case $bench in
    instructions) cargo bench --locked -p tickless --bench "$bench" ;;
    peers) build && section operations ;;
    foreign) build && foreign ;;
    futures) build && section futures ;;
    newcomer) build && newcomer ;;
    all) build && foreign && section futures ;;
    *) echo "there is no bench $bench; see the usage in $0" >&2 && exit 1 ;;
  esac
done
