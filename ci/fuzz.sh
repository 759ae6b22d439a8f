#!/usr/bin/env bash
# Runs every fuzz target under libFuzzer with AddressSanitizer. Writes failing inputs to
# fuzz/artifacts/ and new inputs to fuzz/corpus/. Needs a nightly toolchain and a C++ compiler. The
# gate runs the committed corpus as plain tests instead (ci/replay.sh).
# Usage: ci/fuzz.sh [SECONDS [TARGET]...]    A minute for each target by default.
. "$(dirname "$0")/lib.sh"

seconds=${1:-60}
[ $# -eq 0 ] || shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls fuzz/corpus)

use_nightly rust-src || { skip fuzz "there is no nightly toolchain" && exit 0; }
host=$(rustc "+$NIGHTLY" -vV | sed -n 's/^host: //p')
# The flags of cargo-fuzz: coverage for libFuzzer, and the sanitizer.
flags=(--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions
  -Zsanitizer=address)
export RUSTFLAGS=${flags[*]} CARGO_TARGET_DIR=$PWD/fuzz/target
cargo "+$NIGHTLY" build --release --manifest-path fuzz/Cargo.toml --target "$host"

mkdir -p fuzz/artifacts
for target in "${targets[@]}"; do
  echo "=== $target for $seconds s"
  # valgrind checks for leaks (ci/capi.sh): here the timers of one set outlive an input.
  ASAN_OPTIONS=detect_leaks=0 "fuzz/target/$host/release/$target" "fuzz/corpus/$target" \
    -max_total_time="$seconds" -max_len=2000 -timeout=20 -rss_limit_mb=4096 \
    -artifact_prefix="fuzz/artifacts/$target-" -print_final_stats=1
done
