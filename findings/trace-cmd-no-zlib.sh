#!/usr/bin/env bash
# trace-cmd 3.1.6 of Debian (3.1.6-1): built without zlib, one of the two compressions that version
# 7 of its format names. A file that has it is refused, with "No such file or directory".
# Guessed before the run: both, since the manual names zlib first; or a message about compression.
# The two recordings are one, packed in two ways.
. "$(dirname "$0")/lib.sh"
data=$(cd "$(dirname "$0")/../lab/tickless-trace/tests/data" && pwd)
debian trace-cmd=3.1.6-1 libtracefs1=1.6.4-1 libtraceevent1=1:1.7.1-1 \
  libtraceevent1-plugin=1:1.7.1-1
zcat "$data/version-7-zlib.dat.gz" >"$work/zlib.dat"
libraries=$(ldd "$(command -v trace-cmd)" | grep -oE 'lib(z|zstd)\.so' | sort -u | xargs)
armings=$(trace-cmd report "$data/version-7-zstd.dat" 2>/dev/null | grep -c timer_start:)
refusal=$(trace-cmd report "$work/zlib.dat" 2>&1 | head -n 1) || true
printf 'linked with: %s\nzstd: %s armings\nzlib: %s\n' "$libraries" "$armings" "$refusal" \
  >"$work/seen"
seen <<'SEEN'
linked with: libzstd.so
zstd: 165 armings
zlib: trace-cmd: No such file or directory
SEEN
