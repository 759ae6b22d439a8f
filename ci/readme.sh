#!/usr/bin/env bash
# Runs the README's commands: every ```sh block directly below a line `<!-- ci: run -->`, each in a
# new shell that stops at the first failure.
# Usage: ci/readme.sh [FILE.md]
. "$(dirname "$0")/lib.sh"

blocks=$(mktemp -d)
trap 'rm -rf "$blocks"' EXIT
awk -v dir="$blocks" '
  !inside && marked && $0 == "```sh" { inside = 1; file = sprintf("%s/%03d.sh", dir, ++n) }
  inside && $0 == "```" { inside = 0; close(file) }
  inside && $0 != "```sh" { print > file }
  $0 != "" { marked = ($0 == "<!-- ci: run -->") }
' "${1:-README.md}"

ran=0
for block in "$blocks"/*.sh; do
  [ -f "$block" ] || continue
  sed 's/^/$ /' "$block"
  bash -e "$block" </dev/null
  ran=$((ran + 1))
done
[ "$ran" -gt 0 ] || { echo "${1:-README.md} has no block marked <!-- ci: run -->" >&2; exit 1; }
echo "$ran blocks of ${1:-README.md} ran"
