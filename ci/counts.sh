#!/usr/bin/env bash
# Counts the instructions of the hot operations. Fails if one exceeds its expected count by more
# than a tenth. Needs valgrind.
. "$(dirname "$0")/lib.sh"
command -v valgrind >/dev/null || { skip "instruction counts" "valgrind is not installed"; exit 0; }
cargo bench --locked -p tickless --bench instructions
cargo bench --locked -p tickless --features tokio-time --bench instructions -- runtime
