#!/usr/bin/env bash
# Runs the tests by the command in README.md, and checks that README.md contains it.
. "$(dirname "$0")/lib.sh"
grep -qx 'cargo test' README.md || { echo 'README.md does not contain `cargo test`' >&2; exit 1; }
cargo test
