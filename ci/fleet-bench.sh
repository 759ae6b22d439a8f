#!/usr/bin/env bash
# Measures the costs of sweeps, projections and Python in turn, and prints a table with
# medians and spread. Needs an idle machine of 2 CPUs.
# Usage: ci/fleet-bench.sh [TURNS [PART...]]   5 turns and all parts by default; the parts are
# sweeps, replays and projections
. "$(dirname "$0")/lib.sh"

PYTHON_PROFILE=release
fresh_python
cp lab/python/tests/bench_fleet.py "$venv/"
traces=$PWD/traces
(cd "$venv" && "$bin/python" bench_fleet.py "$bin/tickless" "$traces" "${1:-5}" "${@:2}")
