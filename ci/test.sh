#!/usr/bin/env bash
# Runs the tests by the command in README.md, and checks that README.md contains it.
. "$(dirname "$0")/lib.sh"
grep -qx 'cargo test' README.md || { echo 'README.md does not contain `cargo test`' >&2; exit 1; }

# For a test that opens a recording with trace-cmd, and reports if there is none.
if ! command -v trace-cmd >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  { timeout 120 apt-get update && timeout 600 apt-get install -y --no-install-recommends trace-cmd
  } >/dev/null 2>&1 || true
fi
cargo test
