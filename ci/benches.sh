#!/usr/bin/env bash
# Runs the benches, which the gate only runs tiny. They show figures and assert results, so a
# failure means that something computed the wrong thing, not that something was slow.
# Usage: ci/benches.sh [instructions|timers|held_up|replay|peers|futures]...   All of them without
# a name.
# `peers` takes some minutes, `futures` three; they rewrite their tables of docs/performance.md, and
# want a machine with nothing else to do, and all CPUs. `futures` makes as many connections as the
# limit of open files allows. The others are best run as `taskset -c 1 ci/benches.sh`.
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- instructions timers held_up replay peers futures
for bench in "$@"; do
  case $bench in
    instructions | timers | held_up) cargo bench --locked -p tickless --bench "$bench" ;;
    replay) cargo bench --locked -p tickless-trace --bench replay ;;
    peers | futures)
      cargo build --locked --release --manifest-path bench/Cargo.toml
      section=operations
      [ "$bench" = peers ] || section=futures
      bench/target/release/tickless-bench --section "$section" --markdown docs/performance.md
      ;;
    *) echo "there is no bench $bench; see the usage in $0" >&2 && exit 1 ;;
  esac
done
