#!/usr/bin/env bash
# Breaks the pure code in every way that cargo-mutants knows, and checks that a test notices:
# arithmetic, comparisons, results. Orderings and protocols, which it cannot break sensibly, have
# lists made by hand: ci/mutations.sh. Takes hours. Writes target/mutants/; `missed.txt` there has
# what no test noticed.
# Usage: ci/mutants.sh [FILE]...   All pure files without a name.
. "$(dirname "$0")/lib.sh"

command -v cargo-mutants >/dev/null || timeout 1200 cargo install --locked cargo-mutants
files=("$@")
[ ${#files[@]} -gt 0 ] || files=(
  'crates/tickless-clock/src/*.rs'
  'crates/tickless-core/src/queues/**/*.rs'
  'crates/tickless-core/src/time/*.rs'
  'crates/tickless-core/src/bandwidth/*.rs'
  crates/tickless-core/src/{bandwidth,histogram,periodic,phase,rearm,state}.rs
)
arguments=()
for file in "${files[@]}"; do arguments+=(--file "$file"); done
cargo mutants --test-package tickless-core --test-package tickless-clock --output target/mutants \
  --timeout 120 "${arguments[@]}"
