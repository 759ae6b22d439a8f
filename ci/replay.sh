#!/usr/bin/env bash
# Runs the fuzzers' corpus and random inputs as plain tests, so that faults that a fuzzer has found
# stay fixed. ci/fuzz.sh searches for new ones.
. "$(dirname "$0")/lib.sh"
cargo test --locked -p tickless-fuzz
