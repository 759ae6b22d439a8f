#!/usr/bin/env bash
# Of two CPUs, each spent 20 of the last 110 hundredths of a second in programs and 90 idle, and its
# time of waiting for disks went from 400 back to 390, as the kernel's manual says that it can.
# mpstat and sar 12.6.1, vmstat of procps 4.0.2 and psutil 7.1.3 take it for no waiting: 82 % idle.
# top of the same procps has 110 % in all, and iostat of the same sysstat, too. busybox 1.35.0
# says 21474826 % io.
# Guessed before the run: no waiting, in all of them.
# Needs root, to put recorded texts in the place of `/proc/stat`.
. "$(dirname "$0")/lib.sh"
debian procps=2:4.0.2-3 libproc2-0=2:4.0.2-3 libncursesw6=6.4-4 libtinfo6=6.4-4 \
  sysstat=12.6.1-1 libsensors5=1:3.6.0-7.1 busybox=1:1.35.0-4+deb12u1+b1
export PATH=${LD_LIBRARY_PATH%/usr/lib/*}/bin:$PATH LC_ALL=C
# text USER IDLE IOWAIT: what each of two CPUs has spent, in hundredths of a second.
text() {
  echo "cpu $(($1 * 2)) 0 0 $(($2 * 2)) $(($3 * 2)) 0 0 0 0 0"
  echo "cpu0 $1 0 0 $2 $3 0 0 0 0 0"
  echo "cpu1 $1 0 0 $2 $3 0 0 0 0 0"
  printf 'intr 0\nctxt 0\nbtime 1790000000\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n'
}
BEFORE=$(text 10000 50000 400) AFTER=$(text 10020 50090 390)
export BEFORE AFTER
# second COMMAND...: runs a command that reads `/proc/stat` now, and in a second.
second() {
  echo "$BEFORE" >"$work/stat"
  unshare -m bash -c 'mount --bind "$1" /proc/stat && shift && exec "$@"' - "$work/stat" "$@" &
  sleep 0.5
  echo "$AFTER" >"$work/stat"
  wait $!
}
{
  echo "top: $(second top -b -n 2 -d 1 | grep %Cpu | tail -n 1 |
    grep -oE '[0-9.]+ (us|id|wa)' | xargs)"
  echo "vmstat: $(second vmstat -w 1 2 | tail -n 1 |
    awk '{ print $13, "us", $15, "id", $16, "wa" }')"
  echo "mpstat: $(second mpstat 1 1 | tail -n 1 |
    awk '{ print $3, "us", $12, "id", $6, "wa" }')"
  echo "sar: $(second sar.sysstat -u 1 1 | tail -n 1 |
    awk '{ print $3, "us", $8, "id", $6, "wa" }')"
  echo "iostat: $(second iostat -c 1 2 | grep -A 1 avg-cpu | tail -n 1 |
    awk '{ print $1, "us", $6, "id", $4, "wa" }')"
  echo "busybox top: $(second busybox top -b -n 2 -d 1 | grep ^CPU | tail -n 1 |
    grep -oE '[0-9]+% (usr|idle|io)' | xargs)"
} >"$work/all"
# psutil keeps the texts in a folder of its own, if asked to.
export FOLDER=$work
python psutil==7.1.3 <<'PYTHON'
import os
import pathlib

import psutil

stat = pathlib.Path(os.environ["FOLDER"], "stat")
psutil.PROCFS_PATH = os.environ["FOLDER"]
stat.write_text(os.environ["BEFORE"])
psutil.cpu_times_percent()
stat.write_text(os.environ["AFTER"])
times = psutil.cpu_times_percent()
print(f"psutil: {times.user} us {times.idle} id {times.iowait} wa")
PYTHON
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
top: 20.0 us 90.0 id 0.0 wa
vmstat: 18 us 82 id 0 wa
mpstat: 18.18 us 81.82 id 0.00 wa
sar: 18.18 us 81.82 id 0.00 wa
iostat: 20.00 us 90.00 id 0.00 wa
busybox top: 20% usr 90% idle 21474826% io
psutil: 18.2 us 81.8 id 0.0 wa
SEEN
