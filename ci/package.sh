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

# What cargo has unpacked and built of them when this ran last in this folder: it takes a package of
# the same version for the same.
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
kept=${CARGO_HOME:-$HOME/.cargo}/registry
rm -rf "$kept"/src/*/tickless{,-*}-"$version" "$kept"/cache/*/tickless{,-*}-"$version".crate
rm -rf "${CARGO_TARGET_DIR:-target}"/debug/.fingerprint/tickless-*

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

installed=$(mktemp -d)
trap 'rm -rf "$installed"' EXIT
cargo install --locked -q --path crates/tickless-cli --root "$installed" --target-dir target
"$installed/bin/tickless" --version
size=$(stat -c %s "$installed/bin/tickless")
echo "the program has $((size / 1024)) KiB"
[ "$size" -le $((8 * 1024 * 1024)) ] || fail "that is more than 8 MiB"
