#!/usr/bin/env bash
# Runs the core's pointer code under Miri, which sees what a passing test does not: aliasing,
# dangling and uninitialised memory. Only the tests named here run, since Miri is ~100 times
# slower; a name that matches no test fails. Where Miri cannot be had, says so and passes.
. "$(dirname "$0")/lib.sh"

filters=()

if [ ${#filters[@]} -eq 0 ]; then
  skip miri "no test is listed in ci/miri.sh"
  exit 0
fi
for filter in "${filters[@]}"; do
  cargo test --quiet -p tickless-core --lib -- --list "$filter" | grep ': test$' >/dev/null || {
    echo "no test of tickless-core is named $filter; mend the list in ci/miri.sh" >&2
    exit 1
  }
done

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
cargo +nightly miri test -p tickless-core --lib -- "${filters[@]}"
