#!/usr/bin/env bash
# Monitors of a machine that switches 1,000 times a second between programs, each told to print the
# rate of a second, and stopped for 3 s, as by a suspended terminal or a machine that stands still.
# vmstat of procps 4.0.2, dstat 0.7.4 (which says that it missed 3 ticks) and dool 1.3.8 divide
# what happened in 4 s by 1 s, and report over 3,000. mpstat 12.6.1 and collectl 4.3.1 say 1,000.
# Guessed before the run: all divide by the time that they measured.
# Needs root, to put recorded texts in the place of `/proc/stat`.
. "$(dirname "$0")/lib.sh"
debian procps=2:4.0.2-3 libproc2-0=2:4.0.2-3 sysstat=12.6.1-1 collectl=4.3.1-1 dstat=0.7.4-6.1
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check dool==1.3.8
export PATH=${LD_LIBRARY_PATH%/usr/lib/*}/bin:$PATH LC_ALL=C
cat >"$work/feed.py" <<'PYTHON'
import sys
import time

start = time.monotonic()
with open(sys.argv[1], "w") as file:
    while (passed := time.monotonic() - start) < 11:
        switches = 100_000 + int(passed * 1000)
        spent = f"{5000 + int(passed * 20)} 0 0 {50_000 + int(passed * 80)} 0 0 0 0 0 0"
        file.seek(0)
        file.write(f"cpu  {spent}\ncpu0 {spent}\nintr {switches} 0\nctxt {switches}\n"
                   f"btime 1790000000\nprocesses {switches}\nprocs_running 1\nprocs_blocked 0\n")
        file.flush()
        time.sleep(0.005)
PYTHON
python3 "$work/feed.py" "$work/stat" &
feed=$!
until [ -s "$work/stat" ]; do sleep 0.05; done
pids=()
# start NAME COMMAND...: starts a monitor, which reads the recorded text.
start() {
  unshare -m bash -c 'mount --bind "$1" /proc/stat && shift && exec "$@"' - "$work/stat" "${@:2}" \
    >"$work/out.$1" 2>/dev/null &
  pids+=($!)
}
start vmstat vmstat 1
start mpstat mpstat -I SUM 1
start collectl collectl -sc -i1
start dstat dstat -y --noupdate --nocolor
start dool "$work/venv/bin/dool" -y --noupdate --nocolor
sleep 3.5
kill -STOP "${pids[@]}"
sleep 3
kill -CONT "${pids[@]}"
sleep 2.5
kill "${pids[@]}" "$feed"
wait || true
# show NAME COLUMN: the most of the rates but for the first two, which are of the time before.
show() {
  local most
  most=$(sed 's/\x1b\[[0-9;]*m/ /g' "$work/out.$1" |
    awk -v column="$2" '$column ~ /^[0-9.]+$/ && ++n > 2 && $column > most { most = $column }
      END { print int(most) }')
  echo "$1: $most" >&2
  if [ "$most" -gt 2500 ]; then echo "$1: over 2,500"; else echo "$1: below 1,500"; fi
}
{
  show vmstat 12
  show mpstat 3
  show collectl 4
  show dstat 2
  show dool 2
} >"$work/seen"
seen <<'SEEN'
vmstat: over 2,500
mpstat: below 1,500
collectl: below 1,500
dstat: over 2,500
dool: over 2,500
SEEN
