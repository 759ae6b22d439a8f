#!/usr/bin/env bash
# Measures what `tickless warp` costs: sleeps, clock reads, work without time calls, 1,000 threads
# asleep, jumps of one thread, redis-benchmark in turn with native runs, and the programs of a table
# in libfaketime, too. Needs an idle machine, gcc, and Debian's faketime and redis; leaves out what
# is missing. With BEFORE=PROGRAM, the jumps are measured in turn with another build of `tickless`.
. "$(dirname "$0")/lib.sh"

cargo build --locked -q --release -p tickless-cli
warp=("${CARGO_TARGET_DIR:-$PWD/target}/release/tickless" warp)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rounds=${1:-5}

cat >"$folder/sleeps.c" <<'C'
#include <stdlib.h>
#include <time.h>
int main(int count, char **words) {
  struct timespec second = {1, 0};
  for (int i = atoi(words[1]); i > 0; i--) nanosleep(&second, 0);
}
C
cat >"$folder/clock.c" <<'C'
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>
int main(void) {
  struct timespec now;
  unsigned long long begin = __rdtsc();
  for (int i = 0; i < 10000000; i++) clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%.1f\n", (__rdtsc() - begin) / 1e7);
}
C
cat >"$folder/threads.c" <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>
static void *sleep_often(void *number) {
  struct timespec time = {1, 1000000 * (long)number};
  for (int i = 0; i < 20; i++) nanosleep(&time, 0);
  return 0;
}
int main(void) {
  for (long process = 0; process < 100; process++)
    if (fork() == 0) {
      pthread_t threads[10];
      for (long i = 0; i < 10; i++)
        pthread_create(threads + i, 0, sleep_often, (void *)(process * 10 + i));
      for (int i = 0; i < 10; i++) pthread_join(threads[i], 0);
      _exit(0);
    }
  while (wait(0) > 0);
}
C
cat >"$folder/waits.c" <<'C'
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(int words, char **word) {
  int count = atoi(word[2]), fd = eventfd(0, 0), epoll = epoll_create1(0), value = 1;
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  for (int i = 0; i < count; i++) {
    struct pollfd poll_fd = {fd, POLLIN, 0};
    struct timespec second = {1, 0};
    struct timeval time = {1, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    if (!strcmp(word[1], "nanosleep")) nanosleep(&second, 0);
    if (!strcmp(word[1], "futex")) syscall(SYS_futex, &value, FUTEX_WAIT, 1, &second, 0, 0);
    if (!strcmp(word[1], "poll")) poll(&poll_fd, 1, 1000);
    if (!strcmp(word[1], "epoll_wait")) epoll_wait(epoll, &event, 1, 1000);
    if (!strcmp(word[1], "ppoll")) ppoll(&poll_fd, 1, &second, 0);
    if (!strcmp(word[1], "select")) select(fd + 1, &set, 0, 0, &time);
    // The loop of many programs makes another call, too.
    if (words > 3) getppid();
  }
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  fprintf(stderr, "switches %ld\n", used.ru_nvcsw);
}
C
for program in sleeps clock threads waits; do
  gcc -O1 -o "$folder/$program" "$folder/$program.c" -lpthread
done

# Prints the median of the numbers that a command prints in each round.
median() {
  local round
  for ((round = 0; round < rounds; round++)); do "$@"; done | sort -n |
    sed -n "$((rounds / 2 + 1))p"
}
# Prints the wall time of a command in seconds.
wall() {
  local begin end
  begin=$(date +%s.%N)
  timeout 120 "$@" >/dev/null 2>&1 || echo "(exit status $?)" >&2
  end=$(date +%s.%N)
  echo "$end $begin" | awk '{ printf "%.3f\n", $1 - $2 }'
}
ratio() { echo "$1 $2" | awk '{ printf "%.3f\n", $1 / $2 }'; }

echo "20,000 sleeps of 1 s: $(median wall "${warp[@]}" -q -- "$folder/sleeps" 20000) s"
native=$(median "$folder/clock") virtual=$(median "${warp[@]}" -q -- "$folder/clock")
echo "a clock read: $virtual counts, native $native: $(ratio "$virtual" "$native")"
work=(openssl speed -seconds 1 -bytes 1024 sha256)
command -v openssl >/dev/null || work=(sh -c 'i=0; while [ $i -lt 2000000 ]; do i=$((i + 1)); done')
if [ "${work[0]}" = openssl ]; then
  rate() { "$@" 2>/dev/null | awk '/^sha256/ { print $2 + 0 }'; }
  native=$(median rate "${work[@]}") virtual=$(median rate "${warp[@]}" -q -- "${work[@]}")
  echo "openssl speed sha256: $virtual kB/s, native $native: $(ratio "$native" "$virtual")"
fi
per_jump() {
  "${warp[@]}" -- "$folder/threads" 2>&1 |
    sed -n 's/^tickless: .* passed, \([0-9.]*\) s used, \([0-9]*\) jumps$/\1 \2/p' |
    awk '{ printf "%.0f\n", $1 / $2 * 1e6 }'
}
echo "1,000 threads asleep: $(median per_jump) us for each jump"

# jump PROGRAM CPUS CALL...: prints the us of each jump, and the switches of the thread for each.
jump() {
  local program=$1 cpus=()
  [ "$2" = all ] || cpus=(taskset -c "$2")
  "${cpus[@]}" "$program" warp -- "$folder/waits" "$3" 20000 "${@:4}" 2>&1 |
    sed -n 's/^switches \(.*\)/\1/p; s/.* passed, \([0-9.]*\) s used, \([0-9]*\) jumps$/\1 \2/p' |
    awk 'NR == 1 { switches = $1 } NR == 2 { printf "%.2f %.1f\n", $1 / $2 * 1e6, switches / $2 }'
}
one_cpu=$(taskset -pc $$ | sed 's/.*: *//; s/[,-].*//')
echo "a jump of one thread, in us, and its switches${BEFORE:+, before and now}"
for call in nanosleep futex poll epoll_wait ppoll select 'poll and_more' 'select and_more'; do
  for cpus in "$one_cpu" all; do
    for ((round = 0; round < rounds; round++)); do
      for program in ${BEFORE:-} "${warp[0]}"; do
        # shellcheck disable=SC2086  # two words
        jump "$program" "$cpus" $call >>"$folder/jumps-${program//\//_}"
      done
    done
    for program in ${BEFORE:-} "${warp[0]}"; do
      sort -n "$folder/jumps-${program//\//_}" | sed -n "$((rounds / 2 + 1))p"
      rm "$folder/jumps-${program//\//_}"
    done | paste -s -d ' ' | sed "s/^/$call on ${cpus/#$one_cpu/one} CPU: /"
  done
done

if command -v redis-server >/dev/null; then
  cat >"$folder/redis.sh" <<'SH'
redis-server --port 18976 --save '' --daemonize no >/dev/null &
until redis-cli -p 18976 ping >/dev/null 2>&1; do sleep 0.1; done
redis-benchmark -p 18976 -t get -n 100000 --csv | awk -F'"' '/GET/ { print $4 }'
redis-cli -p 18976 shutdown nosave
wait
SH
  native=$(median sh "$folder/redis.sh") virtual=$(median "${warp[@]}" -q -- sh "$folder/redis.sh")
  echo "redis-benchmark GET: $virtual/s, native $native/s: $(ratio "$virtual" "$native")"
fi

if command -v faketime >/dev/null; then
  echo 'program: seconds in warp, seconds in libfaketime (at 1,000 times the speed); three runs'
  # Prints the least and the most seconds of three runs, or "no" if one fails or takes too long.
  at_most=20
  spread() {
    local round begin end
    for round in 1 2 3; do
      begin=$(date +%s.%N)
      timeout -k 1 $at_most "$@" >/dev/null 2>&1 </dev/null || return 0
      end=$(date +%s.%N)
      echo "$end $begin" | awk '{ printf "%.2f\n", $1 - $2 }'
    done | sort -n | awk '{ all[NR] = $1 } END { print NR < 3 ? "no" : all[1] ".." all[3] }'
  }
  beside() {
    local name=$1
    shift
    echo "$name: $(spread "${warp[@]}" -q -- "$@"), $(spread faketime -f '+0 x1000' "$@")"
  }
  beside 'sleep 3600' sleep 3600
  beside 'a shell with timeout' sh -c 'timeout 1000 sleep 6000; test $? = 124'
  beside '100 sleeps of a shell' sh -c 'for i in $(seq 100); do sleep 10; done'
  beside 'C, dynamic' "$folder/sleeps" 3600
  gcc -O1 -static -o "$folder/static" "$folder/sleeps.c" && beside 'C, static' "$folder/static" 3600
  beside 'Python threading' python3 -c 'import threading
threading.Event().wait(3600)'
  beside 'Python asyncio' python3 -c 'import asyncio
asyncio.run(asyncio.sleep(3600))'
  command -v node >/dev/null && beside 'Node setTimeout' node -e 'setTimeout(() => {}, 3600e3)'
  if command -v go >/dev/null; then
    printf 'package main\nimport "time"\nfunc main() { time.Sleep(time.Hour) }\n' >"$folder/main.go"
    (cd "$folder" && CGO_ENABLED=0 go build -o go-program main.go)
    beside 'Go, static' "$folder/go-program"
  fi
  if command -v java >/dev/null; then
    echo 'class Sleep { public static void main(String[] a) throws Exception {
      Thread.sleep(3600000); } }' >"$folder/Sleep.java"
    at_most=60
    beside 'Java' java "$folder/Sleep.java"
  fi
fi
