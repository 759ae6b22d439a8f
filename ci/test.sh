#!/usr/bin/env bash
# Runs the tests by the command in README.md, and checks that README.md contains it.
. "$(dirname "$0")/lib.sh"
grep -qx 'cargo test' README.md || { echo 'README.md does not contain `cargo test`' >&2; exit 1; }

# For a test that opens a recording with trace-cmd, and reports if there is none.
command -v trace-cmd >/dev/null || install_packages trace-cmd
if [ -n "${CI_HOUSES:-}" ]; then
  select_packages
  # The C interface and the models have steps of their own.
  read -ra packages <<<"$(sed -E 's/-p tickless-(capi|models)\>//g' <<<"${packages[*]}")"
  cargo test --locked "${packages[@]}"
else
  cargo test
fi
