#!/usr/bin/env bash
# Checks the library with each of its optional features by itself, and runs what needs them with
# all of them: no other step builds features that are off by default. The program's Parquet is
# checked here, and tested by ci/python.sh, whose wheel carries such a program.
. "$(dirname "$0")/lib.sh"
need_component clippy
for feature in tracing metrics stream tokio-time; do
  cargo clippy --locked -p tickless --lib --features "$feature" -- -D warnings
done
cargo test --locked -p tickless --all-features --lib --test observing --test tokio_time
cargo test --locked -p tickless --all-features --test all statistics::
cargo clippy --locked -p tickless-fleet -p tickless-cli --features tickless-cli/parquet -- \
  -D warnings
