#!/usr/bin/env bash
# Checks that the API documentation builds without a warning and that every relative link in a
# Markdown file has an existing target.
# Usage: ci/docs.sh [FILE.md]...   With files, checks only the links of these.
. "$(dirname "$0")/lib.sh"

# Prints FILE:LINE:TARGET for each link outside code blocks and code spans.
links() {
  awk '
    FNR == 1 { code = 0 }
    /^ *(```|~~~)/ { code = !code; next }
    code { next }
    {
      gsub(/`[^`]*`/, "")
      while (match($0, /\]\([^)]+\)/)) {
        target = substr($0, RSTART + 2, RLENGTH - 3)
        sub(/[ #].*/, "", target)
        if (target != "" && target !~ /^[a-z]+:/) print FILENAME ":" FNR ":" target
        $0 = substr($0, RSTART + RLENGTH)
      }
    }' "$@"
}

check_links() {
  local file line target broken=0
  while IFS=: read -r file line target; do
    [ -e "$(dirname "$file")/$target" ] && continue
    echo "$file:$line: link to $target, which does not exist; fix or remove the link" >&2
    broken=1
  done < <(links "$@")
  return $broken
}

if [ $# -gt 0 ]; then
  check_links "$@"
  exit
fi
mapfile -d '' pages < <(git ls-files -z --cached --others --exclude-standard '*.md')
check_links "${pages[@]}"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
