#!/usr/bin/env bash
# Checks the style rules that compiler and clippy do not cover: those below, and those of
# tools/tickless-tidy, which need to tell code from comments.
. "$(dirname "$0")/lib.sh"
export LC_ALL=C.UTF-8
failed=0

# refuse ADVICE COMMAND...: fails if the command prints lines.
refuse() {
  local found
  found=$("${@:2}") || true
  [ -z "$found" ] || { printf '%s\n=> %s\n' "$found" "$1" >&2 && failed=1; }
}

long_lines() {
  git grep -nP '^.{101,}' -- '*.rs' '*.sh' '*.toml' ci/gate | grep -v '[a-z]://'
}

# The core's other modules use the platform's words, which the model checkers can watch.
atomics() {
  git ls-files 'timers/tickless-core/src/*.rs' | grep -v '/src/word\.rs$' | xargs awk '
    FNR == 1 { tests = 0 }
    /^#\[cfg\(test\)\]$/ { tests = 1 }
    !tests && !/^ *\/\// && /sync::atomic|[^_[:alnum:]](atomic::|Atomic(U|I|Bool|Ptr))/ {
      print FILENAME ":" FNR ": " $0
    }'
}

# `cargo test` does not search crates with `doctest = false` for examples.
unrun_examples() {
  local manifest
  for manifest in $(git grep -l '^doctest = false$' -- '*Cargo.toml'); do
    git grep -nE '^ *//[/!] *```|doc = include_str' -- "$(dirname "$manifest")/src"
  done
}

# The compiler ignores a module file without a declaration, and its tests never run.
undeclared_modules() {
  local file folder name
  git ls-files '*/src/*.rs' | grep -vE '/src/(lib|main|bin/[^/]*|bin/[^/]*/main)\.rs$' |
    while read -r file; do
      folder=${file%/*} name=$(basename "$file" .rs)
      [ "$name" != mod ] || { name=${folder##*/} && folder=${folder%/*}; }
      grep -qsE "^[^/]*\bmod (r#)?$name;|^ *#\[path.*\b$(basename "$file")\"" \
        "$folder"/{lib,main,mod}.rs "$folder.rs" || echo "$file"
    done
}

uncalled_scripts() {
  local script
  for script in ci/*.sh; do
    sed 's/#.*//' ci/gate | grep -qw "$(basename "$script" .sh)" || [ "$script" = ci/lib.sh ] ||
      grep -q "^|.*\b$(basename "$script")" ci/README.md || echo "$script"
  done
}

refuse 'break the line' long_lines
refuse 'write a path from the repository'"'"'s root' \
  git grep -nE '(^|[^[:alnum:]_.~}-])/(home|root|work|Users)/'
refuse 'finish it, or file an issue and drop the mark' \
  git grep -nE '\b(T[O]DO|F[I]XME|X[X]X)\b|\b(to[d]o|unimp[l]emented)!\(|not (yet )?imp[l]emented'
refuse 'move what the timers need into timers/' \
  git grep -nE 'path = ".*(lab|warp)/' -- 'timers/*Cargo.toml'
refuse 'let warp use nothing of the other houses but tickless-core' \
  git grep -nP 'path = ".*(lab|timers)/(?!tickless-core")' -- 'warp/*Cargo.toml'
refuse 'use the word of the Platform' atomics
refuse 'remove `doctest = false`, or nothing runs these examples' unrun_examples
refuse 'declare the module in its parent, or delete the file' undeclared_modules
refuse 'call the script in .ci/run, or add it to the table in ci/README.md' uncalled_scripts
[ "$failed" = 0 ]
# Nothing waits for these tests, and optimising what they read Rust with takes half a minute of CPU.
CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo test --locked --quiet -p tickless-tidy
