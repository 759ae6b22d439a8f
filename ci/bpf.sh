#!/usr/bin/env bash
# Compiles the eBPF programs of `tickless top` and `tickless warp`, and compares them with the
# committed ones. With `--write`, replaces the committed ones. Needs the clang of Debian 12, which
# compiled them, and installs it if it may; `tickless` itself needs no clang.
. "$(dirname "$0")/lib.sh"

sources=(lab/tickless-top/bpf/top.bpf.c warp/tickless-warp/bpf/threads.bpf.c)
wanted=14.0.6

command -v clang >/dev/null || install_packages clang llvm libc6-dev
version=$(clang -dumpversion 2>/dev/null || true)
if [ "$version" != "$wanted" ]; then
  skip ci/bpf.sh "clang $wanted is not installed, which compiled ${sources[*]}"
  exit 0
fi
built=$(mktemp)
trap 'rm -f "$built"' EXIT
for source in "${sources[@]}"; do
  object=${source%.c}.o
  # The line information of the types contains the folder's name, which must not depend on the
  # machine.
  clang -target bpf -mcpu=v3 -O2 -g -Wall -Werror -ffile-prefix-map="$PWD"=. \
    -fdebug-compilation-dir=. -c "$source" -o "$built"
  "$(command -v llvm-strip-14 || command -v llvm-strip)" -g "$built"
  if [ "${1:-}" = --write ]; then
    cp "$built" "$object"
  elif ! cmp -s "$built" "$object"; then
    echo "$object differs from the compiled $source; run ci/bpf.sh --write" >&2
    exit 1
  fi
done
