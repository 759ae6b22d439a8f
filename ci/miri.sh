#!/usr/bin/env bash
# Runs the pointer code of the core and of the C interface under Miri, which sees what a passing
# test does not: aliasing, dangling and uninitialised memory. The tests named here make themselves
# small for it, since Miri is some hundred times slower. Where Miri cannot be had, says so and
# passes.
. "$(dirname "$0")/lib.sh"

targets=(--lib --test all queue::)

# A nightly that is already there only gets the component; one is installed where there is none.
have_miri() { cargo +nightly miri --version >/dev/null 2>&1; }
have_miri || timeout 600 rustup component add miri rust-src --toolchain nightly ||
  timeout 600 rustup toolchain install nightly --profile minimal -c miri -c rust-src || true
if ! have_miri; then
  skip miri "no nightly toolchain with the miri component is here or to be had"
  exit 0
fi
if ! cargo +nightly miri setup; then
  skip miri "its standard library cannot be built here (see above)"
  exit 0
fi
MIRIFLAGS="-Zmiri-strict-provenance" cargo +nightly miri test -p tickless-core "${targets[@]}"
# The C interface frees timers in their own callbacks. Its drivers make system calls and read the
# clock, and the crate for those makes pointers of numbers.
MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-isolation" \
  cargo +nightly miri test -p tickless-capi --lib --test ends
