#!/usr/bin/env bash
# Measures the replay of trace.dat files of versions 6 and 7 with 100 MB of pages, made from the
# small files of the tests: CPU time compared with gzip on as many bytes, in turn, and peak memory.
# Fails if the median of the turns is more than 3 times gzip's, or more than 500 MB.
#
# gzip compresses copies of the small file, because the pages of the large file repeat and compress
# too well.
# Usage: ci/large-trace.sh [TURNS [SIZE]]
. "$(dirname "$0")/lib.sh"

turns=${1:-5}
size=${2:-100M}
data=crates/tickless-trace/tests/data
if [ ! -x /usr/bin/time ]; then
  skip ci/large-trace.sh "there is no /usr/bin/time"
  exit 0
fi
cargo build --locked --release -q -p tickless-cli
cargo build --locked --release -q -p tickless-trace --example enlarge
built=$(cargo metadata --format-version 1 --no-deps |
  sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gzip -dc "$data/trace-cmd-6.dat.gz" >"$work/small-6.dat"
cp "$data/trace-cmd-7.dat" "$work/small-7.dat"

# Appends a command's CPU seconds and peak memory in megabytes to the file $1.
taken() {
  local to=$1
  shift
  /usr/bin/time -o "$work/time" -f '%U %S %M' "$@" >/dev/null 2>"$work/said" ||
    { cat "$work/said" >&2; return 1; }
  awk '{ print $1 + $2, $3 / 1024 }' "$work/time" >>"$to"
}

# Prints the median of column $2 of the file $1.
median() {
  awk -v column="$2" '{ print $column }' "$1" | sort -g | sed -n "$(((turns + 1) / 2))p"
}

failed=0
for version in 6 7; do
  large=$work/large-$version.dat
  plain=$work/plain-$version
  "$built/release/examples/enlarge" "$work/small-$version.dat" "$size" "$large"
  bytes=$(stat -c %s "$large")
  for _ in $(seq "$((bytes / $(stat -c %s "$work/small-$version.dat") + 1))"); do
    cat "$work/small-$version.dat"
  done >"$plain"
  truncate -s "$bytes" "$plain"
  for _ in $(seq "$turns"); do
    taken "$work/gzip-$version" gzip -c "$plain"
    taken "$work/itself-$version" gzip -c "$large"
    taken "$work/replay-$version" "$built/release/tickless" replay --format json "$large"
  done
  awk -v version="$version" -v bytes="$bytes" \
    -v gzip="$(median "$work/gzip-$version" 1)" -v cpu="$(median "$work/replay-$version" 1)" \
    -v itself="$(median "$work/itself-$version" 1)" \
    -v memory="$(median "$work/replay-$version" 2)" 'BEGIN {
      printf "version %d, file of %.0f MB: %.2f s, %.2f times gzip (%.2f s), %.0f MB\n", version,
        bytes / 1048576, cpu, cpu / gzip, gzip, memory
      printf "  %.2f times gzip of the file itself (%.2f s)\n", cpu / itself, itself
      exit cpu > 3 * gzip || memory > 500
    }' || failed=1
done
exit $failed
