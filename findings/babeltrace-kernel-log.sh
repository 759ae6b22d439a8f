#!/usr/bin/env bash
# babeltrace2 2.0.4 (Debian 2.0.4-1+b6): of a log of the kernel (`source.text.dmesg`), `--end`
# works, but `--begin` is refused at any time, even 0, since the source cannot seek. A time that
# goes back by a microsecond ends the reading with an error at that line.
# Guessed before the run: `--begin` takes the lines from that second on.
. "$(dirname "$0")/lib.sh"
debian babeltrace2=2.0.4-1+b6 libbabeltrace2-0=2.0.4-1+b6
BABELTRACE_PLUGIN_PATH=$(find "$work" -type d -name plugins)
export BABELTRACE_PLUGIN_PATH
printf '[    %s.000000] line\n' 1 2 3 4 >"$work/order"
printf '[    %s] line\n' 1.000000 2.000001 2.000000 3.000000 >"$work/back"
lines() {
  local file=$1 status=0
  shift
  babeltrace2 "$@" -c source.text.dmesg --params="path=\"$work/$file\"" >"$work/out" 2>/dev/null ||
    status=$?
  echo "$file $*: $(grep -c line "$work/out") lines, status $status"
}
{
  lines order --clock-seconds
  lines order --clock-seconds --end=3
  lines order --clock-seconds --begin=2
  lines order --clock-seconds --begin=0
  lines back --clock-seconds
} >"$work/seen"
seen <<'SEEN'
order --clock-seconds: 4 lines, status 0
order --clock-seconds --end=3: 3 lines, status 0
order --clock-seconds --begin=2: 0 lines, status 1
order --clock-seconds --begin=0: 0 lines, status 1
back --clock-seconds: 2 lines, status 1
SEEN
