#!/usr/bin/env bash
# Prints the licences of the crates that are compiled into a package, which programs that contain
# them must carry. Checks nothing; ci/deny.sh checks which licences they have.
# Usage: ci/notices.sh PACKAGE
. "$(dirname "$0")/lib.sh"

registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
host=$(rustc -vV | sed -n 's/^host: //p')
while IFS='|' read -r crate licence; do
  read -r name version _ <<<"$crate"
  printf '%s\n%s %s: %s\n\n' "$(printf '=%.0s' {1..80})" "$name" "${version#v}" "$licence"
  # Some crates come without the text of their licence.
  find "$registry"/*/"$name-${version#v}" -maxdepth 1 -type f -regextype egrep \
    -iregex '.*/(licen[cs]e|copying|copyright|notice|unlicense)[^/]*' -print0 |
    sort -z | xargs -0r cat
  echo
done < <(cargo tree --locked --package "$1" --target "$host" \
  --edges normal,no-proc-macro --prefix none --no-dedupe --format '{p}|{l}' |
  grep -v "($PWD" | sort -u)
