#!/usr/bin/env bash
# Checks all code, with tests and all features, against the workspace's lints, and that Cargo.lock
# is up to date. Warnings are errors.
. "$(dirname "$0")/lib.sh"
need_component clippy
select_packages --workspace
cargo clippy --locked "${packages[@]}" --all-targets --all-features -- -D warnings
