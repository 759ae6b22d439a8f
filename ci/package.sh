#!/usr/bin/env bash
# Packages every publishable crate, in the order of their dependencies, and builds each from its
# package. Checks the metadata that a registry needs, the licences in each package, and the size of
# the program. Uploads nothing.
. "$(dirname "$0")/lib.sh"

fail() { echo "$1" >&2 && exit 1; }

# The metadata and the licences.
for manifest in {timers,lab,warp,tools,timers/adapters}/tickless*/Cargo.toml; do
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
for manifest in {timers,lab,warp,tools}/tickless*/Cargo.toml; do
  grep -q '^publish = false' "$manifest" || continue
  unpublished+=(--exclude "$(basename "$(dirname "$manifest")")")
done

# Removes what an earlier run unpacked and built: cargo would reuse it for a package of the same
# version.
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
kept=${CARGO_HOME:-$HOME/.cargo}/registry
rm -rf "$kept"/src/*/tickless{,-*}-"$version" "$kept"/cache/*/tickless{,-*}-"$version".crate
rm -rf "${CARGO_TARGET_DIR:-target}"/debug/.fingerprint/tickless-*

# Builds from the packages. They depend on each other as they would in the registry, and nobody
# debugs them.
CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
  cargo package --locked --allow-dirty --workspace "${unpublished[@]}"
for package in target/package/*.crate; do
  files=$(tar tzf "$package")
  for file in LICENSE-MIT LICENSE-APACHE README.md Cargo.toml; do
    grep -q "/$file\$" <<<"$files" || fail "$package has no $file"
  done
done

# The adapters depend on crates that are not published yet, so this only lists their packages;
# ci/adapters.sh builds them.
(cd timers/adapters &&
  cargo package --locked --allow-dirty --workspace --no-verify --list >/dev/null)

# A package does not have the profiles of this workspace: `cargo install tickless-cli` compiles each
# crate in several parts, and inlines between them. Only such a build shows whether the parts find
# each other's symbols. The only crate with symbols of its own is the one with assembly.
cargo build --locked -q --profile bench -p tickless-warp --example warp

installed=$(mktemp -d)
trap 'rm -rf "$installed"' EXIT
cargo install --locked -q --path lab/tickless-cli --root "$installed" --target-dir target
"$installed/bin/tickless" --version
size=$(stat -c %s "$installed/bin/tickless")
echo "the size of the program is $((size / 1024)) KiB"
[ "$size" -le $((8 * 1024 * 1024)) ] || fail "the program is larger than 8 MiB"
