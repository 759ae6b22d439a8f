#!/usr/bin/env bash
# Checks everything that is compiled, tests and all features included, against the workspace's
# lints, and that Cargo.lock is up to date: a warning that is not seen is not fixed.
. "$(dirname "$0")/lib.sh"
need_component clippy
cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
