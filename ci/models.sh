#!/usr/bin/env bash
# Explores the core's protocols under the model checkers: loom with every schedule of up to three
# preemptions (two where three threads take part), shuttle with 4,000 random schedules of each
# model. Also fails after 300 s, because a model has then grown too large.
. "$(dirname "$0")/lib.sh"

# Running the mutations that these models must detect takes too long for the gate, so it only checks
# that the lists still match the code.
bash ci/mutations.sh --check

# A folder of its own, so that other steps can build beside this one.
export TICKLESS_MODELS=deep CARGO_TARGET_DIR=$PWD/target/models
test=(cargo test --locked --release -p tickless-models)
"${test[@]}" --no-run
timeout 300 "${test[@]}"
