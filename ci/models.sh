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
test=(cargo test --locked --release -p tickless-models --config)
# Optimised, the models under shuttle take 69 s of CPU to compile and save 25 s of 42.
loom=("${test[@]}" profile.release.package.tickless-models.opt-level=1
  --test models_loom --test models_clock)
shuttle=("${test[@]}" profile.release.package.tickless-models.opt-level=0 --test models_shuttle)
"${loom[@]}" --no-run
"${shuttle[@]}" --no-run
timeout 300 "${loom[@]}"
timeout 300 "${shuttle[@]}"
