#!/usr/bin/env bash
# systemd-cron 1.15.19 (Debian bookworm), which runs crontabs by systemd's timers: its list of the
# names of months lacks October. A job of "nov" runs in October, one of "dec" in November, and one
# of "oct" is refused with a line in the log. And `0 0 13 * 5`, which for cron is each 13th and
# each Friday, is only a Friday that is a 13th.
# Guessed before the run: the right months, and two times for the last job.
. "$(dirname "$0")/lib.sh"
debian systemd-cron=1.15.19-5
cat >"$work/crontab" <<'CRONTAB'
0 0 1 sep * root true September
0 0 1 oct * root true October
0 0 1 nov * root true November
0 0 1 dec * root true December
0 0 1 12 * root true 12
0 0 13 * 5 root true 13 or Friday
CRONTAB
mkdir "$work/units"
generator=$(find "$work" -name systemd-crontab-generator)
/usr/bin/python3 - "$work" "$generator" 2>"$work/errors" <<'PYTHON'
import runpy
import sys

work = sys.argv[1]
generator = runpy.run_path(sys.argv[2])
generate = generator["generate_timer_unit"]
generate.__globals__.update(TARGET_DIR=f"{work}/units", TIMERS_DIR=f"{work}/units")
for number, job in enumerate(generator["parse_crontab"](f"{work}/crontab")):
    generate(job, unit_name=str(number))
PYTHON
{
  for timer in "$work"/units/*.timer; do
    [ -L "$timer" ] || sed -n 's/^Description=.*true \(.*\)"/\1/p; s/^OnCalendar=/  /p' "$timer"
  done
  grep -o 'garbled time.*' "$work/errors" | sed "s|$work/||"
} >"$work/seen"
seen <<'SEEN'
September
  *-9-1 0:0:00
November
  *-10-1 0:0:00
December
  *-11-1 0:0:00
12
  *-12-1 0:0:00
13 or Friday
  Fri *-*-13 0:0:00
garbled time in crontab [0 0 1 oct * root true October]: oct
SEEN
