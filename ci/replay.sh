#!/usr/bin/env bash
# Performs the fuzzers' corpus, and inputs by chance, as plain tests: what a fuzzer has found once
# stays found. ci/fuzz.sh looks for more.
. "$(dirname "$0")/lib.sh"
cargo test --locked -p tickless-fuzz
