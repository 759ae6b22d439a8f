#!/usr/bin/env bash
# Runs the core's pointer code under Miri, which sees what a passing test does not: aliasing,
# dangling and uninitialised memory. Only the tests named here run, since Miri is ~100 times
# slower; a name that matches no test fails, with or without Miri.
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

if ! cargo +nightly miri --version >/dev/null 2>&1 && ! timeout 600 rustup toolchain install \
  nightly --profile minimal --component miri --component rust-src; then
  skip miri "this machine has no nightly toolchain with the miri component, nor the network for it"
  exit 0
fi
if ! cargo +nightly miri setup; then
  skip miri "its standard library cannot be built here (see above)"
  exit 0
fi
cargo +nightly miri test -p tickless-core --lib -- "${filters[@]}"
