#!/usr/bin/env bash
# Builds the files of a release from the committed state: the crates, numbered in the order in which
# a registry takes them; an archive of the sources; one of the program, linked statically; one of
# the C library; and their checksums. Uploads nothing. Two builds of one commit by one compiler are
# identical, in whatever folders. ci/package.sh checks that the crates build. The adapters are not
# among the crates: they can be packaged only when those are in the registry.
# Usage: ci/release.sh [FOLDER]   By default target/release-files.
. "$(dirname "$0")/lib.sh"

fail() { echo "$1" >&2 && exit 1; }

[ -z "$(git status --porcelain)" ] || fail "there are uncommitted changes"
out=${1:-target/release-files}
[ ! -e "$out" ] || fail "$out exists"
mkdir -p "$out"
out=$(cd "$out" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
host=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-target}
epoch=$(git log -1 --format=%ct)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# archive NAME: packs the folder $work/NAME.
archive() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -C "$work" -c "$1" |
    gzip -n9 >"$out/$1.tar.gz"
}

git archive --prefix="tickless-$version/" HEAD | gzip -n9 >"$out/tickless-$version.tar.gz"

unpublished=()
for manifest in crates/*/Cargo.toml; do
  ! grep -q '^publish = false' "$manifest" ||
    unpublished+=(--exclude "$(basename "$(dirname "$manifest")")")
done
mkdir "$out/crates"
number=0
# Cargo packages a crate after those on which it depends.
cargo package --locked --no-verify --workspace "${unpublished[@]}" 2>&1 |
  sed -n 's/^ *Packaging \([^ ]*\) v.*/\1/p' >"$work/order"
while read -r crate; do
  number=$((number + 1))
  cp "$target/package/$crate-$version.crate" \
    "$out/crates/$(printf %02d "$number")-$crate-$version.crate"
done <"$work/order"
[ "$number" -gt 0 ] || fail "cargo packages no crate"

# The compiler writes the names of source files into what it builds.
remap="--remap-path-prefix=$PWD=tickless --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
program=tickless-$version-$host
mkdir -p "$work/$program"
RUSTFLAGS="$remap -Ctarget-feature=+crt-static" \
  cargo build --locked --release --target "$host" --package tickless-cli
cp "$target/$host/release/tickless" README.md CHANGELOG.md LICENSE-* "$work/$program"
"$work/$program/tickless" --version
! readelf -l "$work/$program/tickless" | grep INTERP >/dev/null || fail "the program is not static"
archive "$program"

library=libtickless-$version-$host
RUSTFLAGS=$remap crates/tickless-capi/install.sh --destdir "$work/$library" --prefix /usr/local
archive "$library"

(cd "$out" && sha256sum ./*.tar.gz crates/* >SHA256SUMS && cat SHA256SUMS)
