#!/usr/bin/env bash
# Compares `tickless quota` with the kernel. Records a load of 2 to 16 threads once, without a
# limit, and predicts the throttled periods and the time that stood still under twelve limits. Then
# runs the load under each limit and reads the kernel's counters. Fails unless both figures are
# within 10 % in at least 10 of the 12.
#
# The load's group gets the largest weight, so that other programs take little CPU time from it.
# Needs root, a C compiler, and the cpu controller of version 1 of control groups.
# Usage: ci/quota.sh [SECONDS [SEED]]   20 s for each run, 5 minutes in all
. "$(dirname "$0")/lib.sh"

seconds=${1:-20}
seed=${2:-1}
name=ci/quota.sh
controller=/sys/fs/cgroup/cpu
[ "$(id -u)" = 0 ] || { skip "$name" "control groups need root"; exit 0; }
[ -e $controller/cpu.cfs_quota_us ] || {
  skip "$name" "there is no version 1 cpu controller at $controller"
  exit 0
}
command -v cc >/dev/null || { skip "$name" "there is no C compiler"; exit 0; }

cargo build --locked -q -p tickless-cli
tickless=$(cargo metadata --format-version 1 --no-deps |
  sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/debug/tickless
work=$(mktemp -d)
group=$controller/tickless-quota-$$
running=
clean_up() {
  [ -z "$running" ] || kill "$running" 2>/dev/null || true
  [ -z "$running" ] || wait "$running" 2>/dev/null || true
  [ ! -d "$group" ] || rmdir "$group" || true
  rm -rf "$work"
}
trap clean_up EXIT
mkdir "$group"
echo 262144 >"$group/cpu.shares"

# The load: bursts at random times, each of work for 2 to 16 threads. A thread's work is CPU time,
# and begins at a time of the clock, so that neither depends on other programs.
cat >"$work/load.c" <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
enum { THREADS = 16, SECOND = 1000000000, MS = 1000000 };
static uint64_t begin, end, seed;
static uint64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * (uint64_t)SECOND + t.tv_nsec;
}
static uint64_t draw(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}
static void *run(void *arg) {
  uint64_t me = (uintptr_t)arg, all = seed, mine = seed ^ (me + 1) << 32, at = begin;
  for (;;) {
    at += (10 + draw(&all) % 60) * MS;
    uint64_t active = 2 + draw(&all) % (THREADS - 1), most = draw(&all) % 4 ? 3 : 12;
    uint64_t work = MS / 5 + draw(&mine) % (most * MS);
    if (at >= end) return NULL;
    if (me >= active) continue;
    struct timespec t = {at / SECOND, at % SECOND};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    for (work += now(CLOCK_THREAD_CPUTIME_ID); now(CLOCK_THREAD_CPUTIME_ID) < work;);
  }
}
int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  if (argc < 3) return 2;
  seed = atoi(argv[1]);
  begin = now(CLOCK_MONOTONIC) + SECOND;
  end = begin + (uint64_t)(atof(argv[2]) * SECOND);
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(threads + i, NULL, run, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  // The threads must be in the group until the recording has ended.
  clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){1, 0}, NULL);
}
END
cc -O2 -pthread -o "$work/load" "$work/load.c"

# Starts the load in the group.
start() {
  sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh \
    "$group" "$work/load" "$seed" "$seconds" &
  running=$!
}

limit() {
  echo -1 >"$group/cpu.cfs_quota_us"
  [ ! -e "$group/cpu.cfs_burst_us" ] || echo 0 >"$group/cpu.cfs_burst_us"
  [ "$1" != -1 ] || return 0
  echo "$2" >"$group/cpu.cfs_period_us"
  echo "$1" >"$group/cpu.cfs_quota_us"
  [ "$3" = 0 ] || echo "$3" >"$group/cpu.cfs_burst_us"
}

counters() {
  awk '{ value[$1] = $2 } END { print value["nr_throttled"], value["throttled_time"] }' \
    "$group/cpu.stat"
}

predict() {
  "$tickless" quota "$work/trace.txt.gz" --format csv --limit "$1" --period "$2" \
    --burst "$3" 2>"$work/said" |
    tail -n +2 >>"$work/predicted"
}

limit -1
start
sleep 0.5
"$tickless" record --events quota --cgroup "$group" -o "$work/trace.txt.gz" --buffer 64M \
  -D "$(awk -v seconds="$seconds" 'BEGIN { print seconds + 1 }')s" 2>"$work/said" ||
  { cat "$work/said" >&2; exit 1; }
wait "$running" && running=
predict 0.7,0.8,0.9 20ms,50ms,100ms 0
bursts=3
if [ -e "$group/cpu.cfs_burst_us" ]; then
  predict 0.7 50ms 50
  predict 0.7,0.8 100ms 100
else
  bursts=0
  skip "$name" "this kernel has no cpu.cfs_burst_us, so bursts are not compared"
fi

echo " quota period  burst   throttled            stood still"
echo "    ms     ms     ms   kernel predicted      kernel predicted"
# Where other programs took more than a tenth, these are the least of what is predicted.
while IFS=, read -r _ _ quota period burst _ throttled _ _ _ stood _; do
  limit "$quota" "$period" "$burst"
  read -r throttled_before stood_before < <(counters)
  start
  wait "$running" && running=
  read -r throttled_after stood_after < <(counters)
  awk -v quota="$quota" -v period="$period" -v burst="$burst" -v stood="$stood" \
    -v throttled="$throttled" -v throttled_real=$((throttled_after - throttled_before)) \
    -v stood_real=$((stood_after - stood_before)) '
    function off(a, b) { return b ? 100 * (a - b) / b : (a ? 100 : 0) }
    function size(a) { return a < 0 ? -a : a }
    BEGIN {
      off_throttled = off(throttled, throttled_real)
      off_stood = off(stood, stood_real)
      miss = size(off_throttled) > 10 || size(off_stood) > 10
      printf "%6.1f %6.1f %6.1f", quota / 1e3, period / 1e3, burst / 1e3
      printf " %8d %6.1f %+5.1f %%", throttled_real, throttled, off_throttled
      printf " %8.3f s %8.3f s %+5.1f %% %s\n", stood_real / 1e9, stood / 1e9, off_stood,
        miss ? "MISS" : ""
    }' | tee -a "$work/compared"
done <"$work/predicted"
limit -1
all=$((9 + bursts))
near=$(grep -vc MISS "$work/compared" || true)
echo "$near of $all are within 10 %"
[ "$near" -ge $((all - 2)) ]
