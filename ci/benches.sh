#!/usr/bin/env bash
# Runs the benches, which the gate only runs tiny. They show figures and assert results, so a
# failure means that something computed the wrong thing, not that something was slow.
# Usage: ci/benches.sh [--quick] [--repetitions N] [BENCH]...
#   instructions timers held_up replay   our own operations; best by `taskset -c 1 ci/benches.sh`
#   peers      beside other Rust crates: rewrites their tables of the page; three minutes
#   foreign    the same, and beside peers in C, C++, Go and Java, built first; six minutes
#   futures    beside tokio's futures, and a web server: rewrites its tables; three minutes
#   show       makes the page's picture and first table of the results of the last runs; a moment
#   all        foreign, futures, show: the whole page; ten to twelve minutes on two CPUs
# Without a name: our own operations, and `all`. The page is docs/book/src/performance.md. What
# rewrites it wants a machine with nothing else to do, and all CPUs. --quick takes fewer timers and
# operations and writes nothing into the page; --repetitions sets the samples of each figure.
# `futures` makes as many connections as the limit of open files allows.
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
[ $# -gt 0 ] || set -- instructions timers held_up replay all

results=bench/results
[ "$page" ] || results=bench/target/quick
mkdir -p "$results"
[ "$page" ] || { page=$results/performance.md && cp docs/book/src/performance.md "$page"; }
program=bench/target/release/tickless-bench
build() { cargo build --locked --release --manifest-path bench/Cargo.toml; }
# The tables of section $1, with the other options.
section() {
  local name=$1
  shift
  "$program" --section "$name" --markdown "$page" --json "$results/$name.json" "${options[@]}" "$@"
}
foreign() {
  bench/foreign/build.sh bench/target/foreign
  section operations --foreign bench/target/foreign
}
show() { "$program" --markdown "$page" --show "$results"/*.json; }

for bench in "$@"; do
  case $bench in
    instructions | timers | held_up) cargo bench --locked -p tickless --bench "$bench" ;;
    replay) cargo bench --locked -p tickless-trace --bench replay ;;
    peers) build && section operations && show ;;
    foreign) build && foreign && show ;;
    futures) build && section futures && show ;;
    show) build && show ;;
    all) build && foreign && section futures && show ;;
    *) echo "there is no bench $bench; see the usage in $0" >&2 && exit 1 ;;
  esac
done
