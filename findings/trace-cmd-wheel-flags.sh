#!/usr/bin/env bash
# trace-cmd 3.1.6 with libtraceevent 1.7.1 (Debian bookworm): `report` prints "flags=D|P|I" for
# every timer of the wheel, whatever its flags, because the library loses the parentheses around a
# mask of the event's format. Its plugin for `hrtimer_start` leaves out two of six fields, and
# appends "/0x0" to the function's name. With -R and -N, both are right.
# Guessed before the run: the flags of each timer, as in the kernel's own text.
# The recording is trace-cmd's own, of Linux 7.2.
. "$(dirname "$0")/lib.sh"
recording=$(dirname "$0")/../lab/tickless-trace/tests/data/version-6.dat.gz
debian trace-cmd=3.1.6-1 libtracefs1 libtraceevent1=1:1.7.1-1 \
  libtraceevent1-plugin=1:1.7.1-1
export TRACEEVENT_PLUGIN_DIR=$LD_LIBRARY_PATH/traceevent/plugins
zcat "$recording" >"$work/trace.dat"
report() { trace-cmd report "$@" "$work/trace.dat" 2>/dev/null; }
{
  echo "printed flags: $(report | sed -n 's/.* timer_start:.*flags=//p' | sort | uniq -c | xargs)"
  # Deferrable is bit 19, pinned bit 20, safe in interrupts bit 21.
  report -R | sed -n 's/.* timer_start:.*flags=\([0-9]*\).*/\1/p' >"$work/flags"
  while read -r flags; do echo $((flags >> 19 & 7)); done <"$work/flags" | sort | uniq -c |
    xargs echo "recorded (count, bits):"
  for option in "" -N; do
    report ${option:+$option} | awk '/ hrtimer_start:/ && !seen++' |
      grep -oE '(function|mode|was_armed)=[^ ]*' | xargs
  done
} >"$work/seen"
seen <<'SEEN'
printed flags: 14 D|P|I
recorded (count, bits): 8 0 3 1 1 5 2 7
function=tick_nohz_handler/0x0
function=tick_nohz_handler mode=0x0 was_armed=0
SEEN
