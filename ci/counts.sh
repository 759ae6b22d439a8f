#!/usr/bin/env bash
# Counts the instructions of the hot operations; fails if one takes over a tenth more than it
# should. Needs valgrind.
. "$(dirname "$0")/lib.sh"
command -v valgrind >/dev/null || { skip "instruction counts" "valgrind is not installed"; exit 0; }
cargo bench --locked -p tickless --bench instructions
