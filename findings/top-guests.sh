#!/usr/bin/env bash
# procps 4.0.2 (Debian 2:4.0.2-3): a second in which a machine of two CPUs ran its guests for half
# of the time, and was idle for the other half, as `/proc/stat` says it: the time of guests is in
# that of user, too. top counts it twice, and shows 33.3 % user and 33.3 % idle; the last third is
# in no column. vmstat of the same package, mpstat 12.6.1, the top of busybox 1.35.0 and psutil
# 7.1.3 say that it was idle for 50 %.
# Guessed before the run: 50 % idle in all of them.
# Needs root, to put recorded texts in the place of `/proc/stat`.
. "$(dirname "$0")/lib.sh"
debian procps=2:4.0.2-3 libproc2-0=2:4.0.2-3 libncursesw6=6.4-4 libtinfo6=6.4-4 \
  sysstat=12.6.1-1 libsensors5=1:3.6.0-7.1 busybox=1:1.35.0-4+deb12u1+b1
export PATH=${LD_LIBRARY_PATH%/usr/lib/*}/bin:$PATH
# text USER IDLE GUEST: what each of two CPUs has spent, in hundredths of a second.
text() {
  echo "cpu $(($1 * 2)) 0 0 $(($2 * 2)) 0 0 0 0 $(($3 * 2)) 0"
  echo "cpu0 $1 0 0 $2 0 0 0 0 $3 0"
  echo "cpu1 $1 0 0 $2 0 0 0 0 $3 0"
  printf 'intr 0\nctxt 0\nbtime 1790000000\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n'
}
# second COMMAND...: runs a command that looks at `/proc/stat` now, and in a second.
second() {
  text 10000 50000 400 >"$work/stat"
  unshare -m bash -c 'mount --bind "$1" /proc/stat && shift && exec "$@"' - "$work/stat" "$@" &
  sleep 0.5
  text 10050 50050 450 >"$work/stat"
  wait $!
}
export LC_ALL=C
{
  echo "top: $(second top -b -n 2 -d 1 | grep %Cpu | tail -n 1 |
    grep -oE '[0-9.]+ (us|id)' | xargs)"
  echo "vmstat: $(second vmstat -w 1 2 | tail -n 1 |
    awk '{ print $13, "us", $15, "id", $18, "gu" }')"
  echo "mpstat: $(second mpstat 1 1 | tail -n 1 |
    awk '{ print $3, "us", $12, "id", $10, "gu" }')"
  echo "busybox top: $(second busybox top -b -n 2 -d 1 | grep ^CPU | tail -n 1 |
    awk '{ print $2, "us", $8, "id" }')"
} >"$work/all"
# psutil keeps the texts in a folder of its own, if asked to.
python psutil==7.1.3 <<PYTHON
import pathlib
import psutil

stat = pathlib.Path("$work/stat")
psutil.PROCFS_PATH = "$work"
stat.write_text("""$(text 10000 50000 400)""")
psutil.cpu_percent()
stat.write_text("""$(text 10050 50050 450)""")
print("psutil:", psutil.cpu_percent(), "busy")
PYTHON
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
top: 33.3 us 33.3 id
vmstat: 0 us 50 id 50 gu
mpstat: 0.00 us 50.00 id 50.00 gu
busybox top: 50% us 50% id
psutil: 50.0 busy
SEEN
