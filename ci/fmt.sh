#!/usr/bin/env bash
# Checks that every Rust file is formatted by rustfmt.toml.
. "$(dirname "$0")/lib.sh"
need_component rustfmt
cargo fmt --all --check
