#!/usr/bin/env bash
# Checks that every Rust file is laid out as rustfmt.toml says, so that no diff is about layout.
. "$(dirname "$0")/lib.sh"
need_component rustfmt
cargo fmt --all --check
