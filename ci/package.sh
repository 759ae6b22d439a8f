#!/usr/bin/env bash
# Packages every crate that can be published, in the order of their dependencies, and builds each of
# them from its package. Checks what a registry's page needs, that each package has the licences,
# and the size of the program. Nothing is uploaded.
. "$(dirname "$0")/lib.sh"

fail() { echo "$1" >&2 && exit 1; }

# What a page needs, and that no package comes without a version for what it depends on.
for manifest in crates/*/Cargo.toml adapters/tickless-*/Cargo.toml; do
  grep -q '^publish = false' "$manifest" && continue
  for key in description readme keywords categories; do
    grep -q "^$key" "$manifest" || fail "$manifest has no $key"
  done
  folder=$(dirname "$manifest")
  for licence in LICENSE-MIT LICENSE-APACHE; do
    cmp -s "$licence" "$folder/$licence" || fail "$folder/$licence is not $licence"
  done
done

unpublished=()
for manifest in crates/*/Cargo.toml; do
  grep -q '^publish = false' "$manifest" || continue
  unpublished+=(--exclude "$(basename "$(dirname "$manifest")")")
done

# Builds from the packages, which find each other as they would in the registry.
cargo package --locked --allow-dirty --workspace "${unpublished[@]}"
for package in target/package/*.crate; do
  files=$(tar tzf "$package")
  for file in LICENSE-MIT LICENSE-APACHE README.md Cargo.toml; do
    grep -q "/$file\$" <<<"$files" || fail "$package has no $file"
  done
done

# The adapters depend on crates that are in no registry yet: they are packaged, and built by
# ci/adapters.sh.
(cd adapters && cargo package --locked --allow-dirty --workspace --no-verify --list >/dev/null)

cargo build --locked --release -q -p tickless-cli
size=$(stat -c %s target/release/tickless)
echo "the program has $((size / 1024)) KiB"
[ "$size" -le $((8 * 1024 * 1024)) ] || fail "that is more than 8 MiB"
