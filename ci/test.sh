#!/usr/bin/env bash
# Runs the tests by the very command that the README gives a newcomer, and checks it does.
. "$(dirname "$0")/lib.sh"
grep -qx 'cargo test' README.md || { echo 'README.md does not say `cargo test`' >&2; exit 1; }
cargo test
