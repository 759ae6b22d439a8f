#!/usr/bin/env bash
# Checks the style rules that no compiler knows; see crates/tickless-tidy for each of them.
. "$(dirname "$0")/lib.sh"
cargo tidy
