#!/usr/bin/env bash
# Runs a campaign on a Ray cluster of two nodes, kills a worker, a node and the driver, and compares
# the tables with that of a single process. Then runs the example. Installs Ray from PyPI.
. "$(dirname "$0")/lib.sh"

fresh_python 'ray>=2.40' psutil polars
cp lab/python/tests/ray_cluster.py lab/python/examples/fleet_on_ray.py "$venv/"
cd "$venv"
"$bin/python" ray_cluster.py

cat >campaign.toml <<END
[simulate]
studies = ["rearm"]
machines = ["x5675-2s"]
policies = ["eager", "lazy"]
seeds = "0-9"
rounds = 100
END
"$bin/python" fleet_on_ray.py campaign.toml results
# The program in the wheel can merge the folder that a campaign on Ray has written.
"$bin/tickless" sweep merge results -o results.csv
[ "$(wc -l <results.csv)" = 101 ] || { echo "the example's table is incomplete" >&2; exit 1; }
