#!/usr/bin/env bash
# Builds the files of a release from the committed state, and uploads nothing:
#   crates/          for a registry of crates, numbered in the order in which it takes them
#   python/          a wheel for Linux, which contains the program, and a source distribution
#   debian/          packages of the library, of its headers, and of the program
#   tickless-VERSION.tar.gz        the sources
#   tickless-VERSION-HOST.tar.gz   the program, linked statically
#   libtickless-VERSION-HOST.tar.gz   the C library, to be unpacked into /usr/local
#   sbom/            what each of these is made of, as CycloneDX
#   SHA256SUMS       the checksums of all these files
# Two builds of one commit by one compiler are identical, in whatever folders; --twice builds in two
# clones and compares. ci/package.sh checks that the crates build, and ci/debian.sh that the Debian
# packages can be installed and used. The adapters are not among the crates: they can be packaged
# only when those are in the registry.
# Usage: ci/release.sh [FOLDER]   By default target/release-files.
#        ci/release.sh --twice [FOLDER]
. "$(dirname "$0")/lib.sh"

fail() { echo "$1" >&2 && exit 1; }

twice=
[ "${1:-}" != --twice ] || { twice=1 && shift; }
[ -z "$(git status --porcelain)" ] || fail "there are uncommitted changes"
out=${1:-target/release-files}
[ ! -e "$out" ] || fail "$out exists"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -n "$twice" ]; then
  unset CARGO_TARGET_DIR
  export RELEASE_TOOLS=$work/tools
  commit=$(git rev-parse HEAD)
  for build in one two/deeper; do
    git clone -q . "$work/$build"
    git -C "$work/$build" checkout -q "$commit"
    "$work/$build/ci/release.sh" "$work/$build/out"
    rm -rf "$work/$build/target"
  done
  diff -r "$work/one/out" "$work/two/deeper/out" || fail "two builds differ"
  mkdir -p "$(dirname "$out")"
  mv "$work/one/out" "$out"
  echo "two builds are identical"
  exit
fi

mkdir -p "$out"
out=$(cd "$out" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
host=$(rustc -vV | sed -n 's/^host: //p')
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=${RELEASE_TOOLS:-$target/tools}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# The compiler writes the names of source files into what it builds.
remap="--remap-path-prefix=$PWD=tickless --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
export SOURCE_DATE_EPOCH RUSTFLAGS=$remap

# archive NAME: packs the folder $work/NAME.
archive() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -C "$work" -c "$1" | gzip -n9 >"$out/$1.tar.gz"
}

git archive --prefix="tickless-$version/" HEAD | gzip -n9 >"$out/tickless-$version.tar.gz"

unpublished=()
for manifest in {timers,lab,warp,tools}/tickless*/Cargo.toml; do
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

program=tickless-$version-$host
mkdir -p "$work/$program"
# Only the last crate is told to link statically, so that the Debian packages share the others.
cargo rustc --locked --release --package tickless-cli --bin tickless -- \
  -Ctarget-feature=+crt-static
cp "$target/release/tickless" README.md CHANGELOG.md LICENSE-* "$work/$program"
ci/notices.sh tickless-cli >"$work/$program/THIRD-PARTY"
"$work/$program/tickless" --version
! readelf -l "$work/$program/tickless" | grep INTERP >/dev/null || fail "the program is not static"
archive "$program"

# The program in the wheel is static, too.
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'maturin==1.16.0'
(cd lab/python &&
  "$work/venv/bin/maturin" build --locked --release --compatibility manylinux2014 \
    --out "$out/python" -- -Ctarget-feature=+crt-static &&
  "$work/venv/bin/maturin" sdist --out "$out/python")

ci/debian.sh --build "$out/debian"

library=libtickless-$version-$host
timers/tickless-capi/install.sh --destdir "$work/$library" --prefix /usr/local
ci/notices.sh tickless-capi >"$work/$library/usr/local/share/doc/tickless/THIRD-PARTY"
archive "$library"

# In a copy, because the lists are written beside the manifests.
[ -x "$tools/bin/cargo-cyclonedx" ] || RUSTFLAGS='' cargo install --locked --debug \
  cargo-cyclonedx --version 0.5.9 --root "$tools" --target-dir "$tools/build"
rm -rf "$tools/build"
mkdir "$out/sbom"
tar -xzf "$out/tickless-$version.tar.gz" -C "$work"
for manifest in lab/tickless-cli timers/tickless-capi; do
  manifest=$work/tickless-$version/$manifest
  "$tools/bin/cargo-cyclonedx" cyclonedx -q --manifest-path "$manifest/Cargo.toml" --format json \
    --target "$host" --all-features --no-build-deps
  sed "s#$work/tickless-$version#/tickless#g" "$manifest"/*.cdx.json \
    >"$out/sbom/$(basename "$manifest"/*.cdx.json)"
done

(cd "$out" && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum >SHA256SUMS)
cat "$out/SHA256SUMS"
