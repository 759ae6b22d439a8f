#!/usr/bin/env bash
# Checks the style rules that compiler and clippy do not cover, listed in crates/tickless-tidy.
. "$(dirname "$0")/lib.sh"
cargo tidy
