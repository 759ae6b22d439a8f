#!/usr/bin/env bash
# Measures how fast traces are read, and how much memory that takes: wall times (medians of turns)
# and peaks of memory of each program on the same recording. The recording is made of a committed
# one, in copies that follow each other; every copy is moved in time, and so are its deadlines.
# Usage: ci/trace-bench.sh [MILLIONS [TURNS [PROGRAM...]]]   4 and 3 by default. Programs beside
# this tree's: other builds of tickless, and trace-cmd where it is installed.
# Files of 100 million events need 4 GB, and their text 14 GB: it is left out above 20 million.
. "$(dirname "$0")/lib.sh"

millions=${1:-4} turns=${2:-3}
cargo build --quiet --release -p tickless-cli
exec python3 ci/trace-bench.py "$millions" "$turns" target/release/tickless "${@:3}"
