#!/usr/bin/env bash
# Checks the library with each optional feature alone, and runs the tests that need features with
# all of them: no other step builds features that are off by default.
. "$(dirname "$0")/lib.sh"
need_component clippy
for feature in tracing metrics tokio-time tokio-test-util; do
  cargo clippy --locked -p tickless --lib --features "$feature" -- -D warnings
done
cargo test --locked -p tickless --all-features --lib --test observing --test tokio_time \
  --test tokio_runtime
cargo test --locked -p tickless --all-features --test all statistics::
