#!/usr/bin/env bash
# Compares the public interface with docs/dev/public-api.txt; TICKLESS_API=write rewrites that file.
# After the first release, cargo-semver-checks also compares it with the released version.
. "$(dirname "$0")/lib.sh"

docs=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
# Removes the old pages, because those of removed items would stay. The touch makes cargo write the
# pages again.
rm -rf "$docs/doc/tickless"
touch timers/tickless/src/lib.rs
cargo doc --quiet --package tickless --no-deps --all-features
# Not optimised, as in ci/tidy.sh.
TICKLESS_DOCS=$docs/doc/tickless CARGO_PROFILE_DEV_OPT_LEVEL=0 \
  cargo test --quiet --package tickless-tidy --test api -- --ignored

released=$(git tag --list 'v[0-9]*' --sort=-v:refname | head -n 1)
if [ -n "$released" ]; then
  cargo install --quiet --locked cargo-semver-checks --version 0.44.0
  cargo semver-checks --package tickless --all-features --baseline-rev "$released"
else
  echo "nothing is released yet: semantic versions are not checked"
fi
