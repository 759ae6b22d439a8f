#!/usr/bin/env bash
# Explores the core's protocols under the model checkers: loom with every schedule of up to three
# preemptions (two where three threads meet), shuttle with 4,000 random schedules of each model.
# Fails as well if that takes longer than it may, which is how a model that has grown too big shows.
. "$(dirname "$0")/lib.sh"

# The list of what these models must notice is too long for the gate, but it must not rot.
bash ci/mutations.sh --check

export TICKLESS_MODELS=deep
test=(cargo test --locked --release -p tickless-models)
"${test[@]}" --no-run
timeout 300 "${test[@]}"
