#!/usr/bin/env bash
# Runs programs in many languages in virtual time, on all CPUs and on one, and checks what each
# computes and the time that it measures. Programs whose language or server is missing are left out.
# `ci/warp.sh 1000` repeats each so many times, and `ci/warp.sh 1000 redis nginx` only these.
# `ci/warp.sh --table` writes what it finds to the table of the book's page; with names behind it,
# it replaces or adds only their rows.
. "$(dirname "$0")/lib.sh"

table=''
[ "${1:-}" != --table ] || { table=docs/book/src/warp.md && set -- 1 "${@:2}"; }
rounds=${1:-1} names=("${@:2}")
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  skip ci/warp.sh "virtual time for programs needs Linux on x86-64"
  exit 0
fi
cargo build --locked -q -p tickless-cli
cargo build --locked -q -p tickless-warp --tests --examples
cargo build --locked -q -p tickless --example waits
warp=${CARGO_TARGET_DIR:-$PWD/target}/debug/tickless
if ! "$warp" warp -q -- true; then
  skip ci/warp.sh "this machine does not allow tracing"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
done_programs=0 missing=()

# has COMMAND...: whether all are installed; notes the first otherwise.
has() {
  local command
  for command in "$@"; do
    command -v "$command" >/dev/null || { missing+=("$command") && return 1; }
  done
}

# seconds_of passed|used FILE: prints a time of the closing line, in seconds, rounded down.
seconds_of() {
  local time="[0-9][a-z0-9. ]*"
  sed -n "s/^tickless: \($time\) passed, \($time\) used, .*/passed \1\nused \2/p" "$2" |
    awk -v which="$1" '$1 == which {
      for (i = 2; i < NF; i += 2) {
        unit = $(i + 1)
        total += $i * (unit == "d" ? 86400 : unit == "h" ? 3600 : unit == "min" ? 60 : 1)
      }
    }
    END { print int(total) }'
}

# row NAME WANTED: prints the row of the table for the program that has just run. Its version is the
# first number of the kind 1.2 that the command in \`version\` prints.
version=()
row() {
  local time="[0-9][a-z0-9. ]*" number=''
  [ ${#version[@]} = 0 ] ||
    number=$("${version[@]}" 2>&1 | grep -oE '[0-9]+(\.[0-9]+)+[-+.a-z0-9]*' | head -n 1)
  sed -n "s/^tickless: \($time\) passed, \($time\) used, \([0-9]*\) jumps*$/\1 | \3 | \2/p" \
    "$folder/errors" | sed "s/.*/| $1 | $number | & | \`${2//$'\n'/ }\` |/; s/ \`\` / nothing /"
}

# write_table: puts the rows in place of those with their names, or behind the others.
write_table() {
  awk -F '|' -v rows="$folder/rows" '
    /^<!-- end of programs -->/ {
      while ((getline line < rows) > 0) if (!(line in printed)) print line
      inside = 0
    }
    inside && $2 in new { print new[$2]; printed[new[$2]]; next }
    /^<!-- programs -->/ {
      inside = 1
      while ((getline line < rows) > 0) { split(line, cells, "|"); new[cells[2]] = line }
      close(rows)
    }
    { print }' "$table" >"$folder/page" && cp "$folder/page" "$table"
}

# chosen NAME: whether a program should run.
chosen() {
  local name
  [ ${#names[@]} != 0 ] || return 0
  for name in "${names[@]}"; do [ "$name" != "$1" ] || return 0; done
  return 1
}

# check NAME SECONDS WANTED COMMAND...: the command prints WANTED, and by its clock it takes
# SECONDS, at most a tenth more (at least 5 s), and at most the real time that was used more: time
# also flows while a program computes. On one CPU, it runs with a report, for which all waits are
# traced. `options` has more options of `tickless warp`, and `allowed` the seconds that a program
# may take beyond the real time.
options=() allowed=1
check() {
  local name=$1 seconds=$2 wanted=$3 round cpus out passed used
  shift 3
  chosen "$name" || return 0
  for ((round = 0; round < rounds; round++)); do
    for cpus in all one; do
      local on_cpus=() report=()
      [ $cpus = all ] || on_cpus=(taskset -c "$one_cpu") report=(-o "$folder/report")
      if ! out=$(timeout -k 1 "$limit" "$warp" warp "${report[@]}" "${options[@]}" \
        -- "${on_cpus[@]}" "$@" 2>"$folder/errors" </dev/null); then
        echo "$name fails or hangs on $cpus CPUs (round $round):" >&2
        tail -n 20 "$folder/errors" >&2
        exit 1
      fi
      passed=$(seconds_of passed "$folder/errors") used=$(seconds_of used "$folder/errors")
      if [ "$out" != "$wanted" ] || [ "$passed" -lt "$seconds" ] ||
        [ "$passed" -gt $((seconds + seconds / 10 + 5)) ] ||
        [ "$passed" -gt $((seconds + used + allowed)) ]; then
        echo "$name on $cpus CPUs (round $round): printed '$out', not '$wanted'; took $passed s of \
virtual time, not $seconds: $(tail -n 1 "$folder/errors")" >&2
        exit 1
      fi
      [ -z "$table" ] || [ $cpus = one ] || row "$name" "$wanted" >>"$folder/rows"
    done
  done
  done_programs=$((done_programs + 1)) version=()
}

# prints NAME MESSAGE COMMAND...: the command prints a message that has MESSAGE.
prints() {
  local name=$1 message=$2
  shift 2
  chosen "$name" || return 0
  { timeout -k 1 "$limit" "$@" || true; } >"$folder/out" 2>&1 </dev/null
  if ! grep -qe "$message" "$folder/out"; then
    echo "$name: prints no '$message'" >&2
    cat "$folder/out" >&2
    exit 1
  fi
  done_programs=$((done_programs + 1))
}

limit=60
one_cpu=$(taskset -pc $$ | sed 's/.*: *//; s/[,-].*//')

check 'a sleep of an hour' 3600 '' sleep 3600
check 'a loop of sleeps' 1000 1000 sh -c 'for i in $(seq 1000); do sleep 1; done; echo $i'
check 'timeout' 10 124 sh -c 'timeout 10 sleep 60; echo $?'
mkfifo "$folder/pipe"
# shellcheck disable=SC2016  # the inner shells expand it
check 'named pipes' 10800 $'x\ny' sh -c '(sleep 3600; echo x >"$0/pipe") & sleep 1; cat "$0/pipe"
  cd "$0"; cat <pipe & sleep 7200; echo y >pipe; wait' "$folder"
# shellcheck disable=SC2016  # the inner shell expands it
prints 'standard input' 'waits for its standard input' sh -c 'sleep 0.3 | "$0" warp -- cat' "$warp"
# shellcheck disable=SC2016  # the inner shell expands it
check 'pipes between processes' 0 '' sh -c 'for i in $(seq 50); do
  (echo x | cat | cat | cat) | timeout 3600 cat >/dev/null || exit 1
done'
# shellcheck disable=SC2016  # the inner shell expands it
check 'a stopped process' 10 '' sh -c 'sleep 10 & sleep 2; kill -STOP $!; sleep 1
  kill -CONT $!; wait $!'
# shellcheck disable=SC2016  # the inner shell expands it
prints 'exit statuses and signals' '^7 143 139$' sh -c '
  for end in "exit 7" "kill -TERM \$\$" "kill -SEGV \$\$"; do
    "$0" warp -q -- sh -c "$end"
    printf "%s " $?
  done | sed "s/ $//"' "$warp"
check 'a pipeline' 30 a sh -c '(sleep 5; echo a; sleep 5) | (sleep 3; cat; sleep 20)'

options=(--freeze)
check '10,000 children' 1 10000 \
  sh -c 'i=0; while [ $i -lt 10000 ]; do (exit 0); i=$((i + 1)); done; sleep 1; echo $i'
# As Ruby waits: the wait goes on unless the clock is past its end.
if has python3; then
  check 'a clock past the deadline' 60 61 python3 -c 'import time
start = time.monotonic()
while time.monotonic() - start <= 60:
    time.sleep(max(60 - (time.monotonic() - start), 0))
time.sleep(1)
print(round(time.monotonic() - start))'
fi
options=()
prints 'a missing program' '/no/such/program: cannot be run' "$warp" warp -- /no/such/program
prints 'a program that is traced already' 'traces this one' "$warp" warp -- "$warp" warp -- true
prints 'a tracer inside' 'debuggers and strace without' "$warp" warp -- "$warp" warp -- true
prints 'processes that are left' 'have been ended' "$warp" warp -- \
  sh -c '(setsid sh -c "while :; do sleep 1; done" &) & sleep 2'
# shellcheck disable=SC2016  # the inner shells expand it
prints 'the tree of a tracer that is killed' '^ended$' sh -c '
  "$0" warp -- sh -c "echo \$\$; sleep 1; exec cat /dev/zero >/dev/null" >"$1" &
  until [ -s "$1" ]; do sleep 0.1; done
  kill -KILL $!
  while kill -0 "$(cat "$1")" 2>/dev/null; do sleep 0.1; done
  echo ended' "$warp" "$folder/child"

# explains MESSAGE WORDS...: a program that makes no progress gets a message after 10 s, later on a
# busy machine.
explaining=()
explains() (
  out=$(mktemp "$folder/XXXXXX")
  "$warp" warp "${@:2}" >"$out" 2>&1 </dev/null &
  for ((round = 0; round < 240; round++)); do
    ! grep -qe "$1" "$out" || { kill -KILL $! && exit; }
    sleep 0.5
  done
  kill -KILL $!
  echo "no progress: prints no '$1'" >&2
  cat "$out" >&2
  exit 1
)
if chosen 'no progress'; then
  explains 'stands still' --freeze -- sh -c 'sleep 5 & exec cat /dev/zero >/dev/null' &
  explaining+=($!)
  explains '--pace 60x shortens' -- sh -c 'while :; do :; done' &
  explaining+=($!)
  # shellcheck disable=SC2016  # the inner shell expands it
  explains 'nothing in the program causes' -- sh -c 'kill -STOP $$' &
  explaining+=($!)
  if has gcc; then
    cat >"$folder/progress.c" <<'C'
#include <unistd.h>
#include <x86intrin.h>
int main(int words, char **word) {
  unsigned long long begin = __rdtsc();
  while (__rdtsc() - begin < 1ULL << 43) if (words > 1) sleep(1);
}
C
    gcc -O1 -o "$folder/progress" "$folder/progress.c"
    explains 'run it without --freeze' --freeze -- "$folder/progress" &
    explaining+=($!)
    # As fio waits for its next request.
    explains 'it ends with --tsc' -- "$folder/progress" sleeps &
    explaining+=($!)
  fi
  for process in "${explaining[@]}"; do wait "$process"; done
  done_programs=$((done_programs + 1))
fi
# The rows of a report are in the order of the time that they cost.
# shellcheck disable=SC2016  # the inner shell expands it
prints 'a report' '^5 3 2 $' sh -c '"$0" warp -q --report --format csv -o "$1" -- \
  sh -c "sleep 3; sleep 5 & wait; sleep 2" && awk -F, "NR > 1 { printf \"%.0f \", \$10 }
  END { print \"\" }" "$1"' "$warp" "$folder/report"
# The library reads the time-stamp counter itself.
options=(--tsc)
check 'Rust: tokio, threads, this library' 1300 1300 \
  "${CARGO_TARGET_DIR:-$PWD/target}/debug/examples/waits" 1000
# 0.1 s of real time is a minute.
options=(--pace 600x) allowed=60
check '--pace' 600 '' sleep 600
if chosen '--pace' && [ "$(seconds_of used "$folder/errors")" = 0 ]; then
  echo "--pace jumps: $(tail -n 1 "$folder/errors")" >&2
  exit 1
fi
options=() allowed=1
prints '--until' '1 d 0 h 0 min 0.* s passed' "$warp" warp --until 24h -- sleep 1000000
if [ "$(id -u)" = 0 ] && has setpriv; then
  cp "$(command -v sleep)" "$folder/set-uid"
  cp "$warp" "$folder/tickless"
  chmod 755 "$folder" && chmod 4755 "$folder/set-uid"
  as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  prints 'a set-uid program' 'set-uid is set-uid, and runs without' "${as_nobody[@]}" \
    "$folder/tickless" warp -- "$folder/set-uid" 1
fi

# A program whose memory and calls the tracer may not read, as one that is not root.
mkdir -m 755 "$folder/unreadable"
chmod 755 "$folder"
cp "$warp" "$folder/unreadable/tickless"
cp "$(command -v sleep)" "$folder/unreadable"
chmod 755 "$folder/unreadable/tickless"
chmod 111 "$folder/unreadable/sleep"
as_other=()
if [ "$(id -u)" != 0 ] || has setpriv; then
  [ "$(id -u)" != 0 ] || as_other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  # shellcheck disable=SC2016  # the inner shell expands it
  prints 'a program that cannot be read' '^0$' "${as_other[@]}" \
    sh -c '"$0/tickless" warp -q -- timeout 3600 "$0/sleep" 0.3; echo $?' "$folder/unreadable"
fi
if has python3; then
  cat >"$folder/outside.py" <<'PY'
# What a program in virtual time awaits from outside of its tree: an alarm that is an hour away must
# not ring meanwhile. The first process is outside; the second one, inside, takes each step.
import fcntl, mmap, os, pty, select, signal, socket, struct, subprocess, sys, time

folder = sys.argv[2]
at = lambda name: os.path.join(folder, name)
lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
OFD_SETLKW = 38


def ask(family, kind, address, connects=True):
    with socket.socket(family, kind) as to:
        if connects:
            to.connect(address)
            to.send(b"x")
        else:
            to.sendto(b"x", address)
        assert to.recv(1) == b"y"


def ask_by_nested_epoll():
    inner, outer = select.epoll(), select.epoll()
    inner.register(0, select.EPOLLIN)
    outer.register(inner.fileno(), select.EPOLLIN)
    assert outer.poll() and os.read(0, 1) == b"y"


def output():
    os.set_blocking(1, False)
    left = 5_000_000
    while left > 0:
        select.select([], [1], [])
        left -= os.write(1, b"x" * min(left, 4096))


def send():
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(at("socket"))
        to.sendall(b"x" * 5_000_000)


def inside(port, terminal):
    inet, stream, datagram = socket.AF_INET, socket.SOCK_STREAM, socket.SOCK_DGRAM
    local = ("127.0.0.1", port)
    steps = {
        "a Unix socket": lambda: ask(socket.AF_UNIX, stream, at("socket")),
        "TCP": lambda: ask(inet, stream, local),
        "a connected UDP socket": lambda: ask(inet, datagram, local),
        "a UDP socket": lambda: ask(inet, datagram, local, False),
        "flock": lambda: fcntl.flock(open(at("a")), fcntl.LOCK_EX),
        "fcntl": lambda: fcntl.lockf(open(at("b"), "r+"), fcntl.LOCK_EX),
        "a lock of an open file": lambda: fcntl.fcntl(open(at("c"), "r+"), OFD_SETLKW, lock),
        "a lease": lambda: open(at("d")),
        "a slow reader of a socket": send,
        "a terminal": lambda: os.read(os.open(terminal, os.O_RDWR | os.O_NOCTTY), 1),
        "an epoll in another one": ask_by_nested_epoll,
        "output": lambda: os.write(1, b"x" * 300_000),
        "output after a select": output,
    }
    for name, step in steps.items():
        signal.signal(signal.SIGALRM, lambda *_: sys.exit("the clock jumps over " + name))
        signal.alarm(3600)
        step()
        signal.alarm(0)


def slow_length(fd):
    """Reads to the end into pages that the kernel has yet to find. It says early in a read that
    there is room again, and wakes the writer only at the end."""
    length = 0
    while True:
        with mmap.mmap(-1, 1 << 20) as pages:
            count = os.readv(fd, [pages])
        if count == 0:
            return length
        length += count


def outside():
    files = [open(at(name), "w+") for name in "abc"]
    fcntl.flock(files[0], fcntl.LOCK_EX)
    fcntl.lockf(files[1], fcntl.LOCK_EX)
    fcntl.fcntl(files[2], OFD_SETLKW, lock)
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    files.append(open(at("d"), "w"))
    fcntl.fcntl(files[3], fcntl.F_SETLEASE, fcntl.F_WRLCK)
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(at("socket"))
    unix.listen()
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(tcp.getsockname())
    master, terminal = pty.openpty()
    port, terminal = str(tcp.getsockname()[1]), os.ttyname(terminal)
    command = [sys.argv[1], "warp", "--", sys.executable, __file__, "inside", folder]
    command += [port, terminal]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wait = lambda: time.sleep(0.3)
    for server in unix, tcp:
        client = server.accept()[0]
        client.recv(1)
        wait()
        client.send(b"y")
    for _ in range(2):
        address = udp.recvfrom(1)[1]
        wait()
        udp.sendto(b"y", address)
    for file in files:
        wait()
        file.close()
    client = unix.accept()[0]
    wait()
    slow_length(client.fileno())
    wait()
    os.write(master, b"y\n")
    wait()
    program.stdin.write(b"y")
    program.stdin.flush()
    wait()
    assert slow_length(program.stdout.fileno()) == 5_300_000
    print("all waited" if program.wait() == 0 else "failed")


inside(int(sys.argv[3]), sys.argv[4]) if sys.argv[1] == "inside" else outside()
PY
  prints 'what comes from outside' 'all waited' python3 "$folder/outside.py" "$warp" "$folder"
fi

if has python3; then
  prints 'work of the kernel, and threads' 'all is well' "$warp" warp -- python3 ci/warp-inside.py
fi

if has python3 && [ "$(nproc)" -gt 1 ]; then
  cat >"$folder/turns.py" <<'PY'
# The tracer keeps a thread that only waits on its own CPU. The second process, inside, never sees
# that; the first one, outside, does.
import os, select, subprocess, sys

if sys.argv[1] == "inside":
    print(os.getpid(), flush=True)
    cpus, poll = os.sched_getaffinity(0), select.poll()
    for turn in range(200):
        for _ in range(200):
            poll.poll(1000)
            if turn % 2:
                os.getppid()
        child = os.fork()
        if child == 0 and turn % 20 == 0:
            os.execvp("sh", ["sh", "-c", "test $(nproc) = %d" % len(cpus)])
        elif child == 0:
            os._exit(os.sched_getaffinity(0) != cpus)
        assert os.waitpid(child, 0)[1] == 0
        assert os.sched_getaffinity(0) == cpus
        os.sched_setaffinity(0, {max(cpus)})
        poll.poll(1000)
        assert os.sched_getaffinity(0) == {max(cpus)}
        os.sched_setaffinity(0, cpus)
    sys.exit()
command = [sys.argv[1], "warp", "-q", "--", sys.executable, __file__, "inside"]
program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
pid, seen = int(program.stdout.readline()), set()
while program.poll() is None:
    try:
        seen.add(len(os.sched_getaffinity(pid)))
    except ProcessLookupError:
        pass
print(program.returncode, min(seen), max(seen) > 1)
PY
  prints 'turns on one CPU' '^0 1 True$' python3 "$folder/turns.py" "$warp"
fi

if has gcc; then
  cat >"$folder/threads.c" <<'C'
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static void *wait_for(void *number) {
  for (int i = 0; i < 5; i++) poll(0, 0, 1000 * (int)(long)number);
  return 0;
}
int main(void) {
  pthread_t threads[200];
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long i = 0; i < 200; i++) pthread_create(threads + i, 0, wait_for, (void *)(i + 1));
  for (int i = 0; i < 200; i++) pthread_join(threads[i], 0);
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%d\n", (int)(end.tv_sec - begin.tv_sec) / 10);
}
C
  gcc -O1 -o "$folder/threads" "$folder/threads.c" -lpthread
  check 'threads in C' 1000 100 "$folder/threads"
  gcc -O1 -static -o "$folder/static" "$folder/threads.c" -lpthread &&
    check 'a static program in C' 1000 100 "$folder/static"
fi
if has gcc; then
  gcc -O1 -o "$folder/group" -x c - <<'C'
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile int got;
static void take(int signal) { got += signal == SIGTERM; }
int main(void) {
  signal(SIGTERM, take);
  kill(0, SIGTERM);
  sleep(1);
  printf("got %d\n", got);
}
C
  prints 'a signal to the group' '^got 1$' setsid -w "$warp" warp -q -- "$folder/group"
fi
if has gcc && [ "$(id -u)" = 0 ]; then
  gcc -O1 -o "$folder/thread-timer" -x c - <<'C' -lpthread -lrt
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void fire(union sigval value) {
  (void)value;
  puts("fired");
  exit(0);
}
int main(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = fire};
  struct itimerspec minute = {.it_value = {60, 0}};
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &minute, 0);
  sleep(1000);
  return 1;
}
C
  check 'a timer with a thread, in a namespace' 60 fired \
    unshare --pid --fork "$folder/thread-timer"
fi
if has gcc && gcc -m32 -x c -nostdlib -static -o "$folder/of-32-bits" - <<'C' 2>/dev/null; then
void _start(void) { asm("int $0x80" : : "a"(1), "b"(0)); }
C
  prints 'a program of 32 bits' 'of-32-bits is a program of 32 bits' "$warp" warp -- \
    "$folder/of-32-bits"
fi
if has gcc; then
  cat >"$folder/counter.c" <<'C'
#include <stdio.h>
#include <unistd.h>
#include <x86intrin.h>
int main(void) {
  unsigned long long begin = __rdtsc(), second;
  sleep(1);
  second = __rdtsc() - begin;
  sleep(1000);
  printf("%d\n", (int)((__rdtsc() - begin) / second + 50) / 100);
}
C
  gcc -O1 -o "$folder/counter" "$folder/counter.c"
  options=(--tsc)
  check '--tsc' 1001 10 "$folder/counter"
  options=(--freeze)
  check 'the counter with --freeze' 1001 10 "$folder/counter"
  options=()
fi
if has musl-gcc; then
  musl-gcc -O1 -static -o "$folder/musl" "$folder/threads.c"
  check 'a static program with musl' 1000 100 "$folder/musl"
fi
if has go; then
  cat >"$folder/main.go" <<'GO'
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

func main() {
	start := time.Now()
	var all sync.WaitGroup
	for i := 0; i < 100; i++ {
		all.Add(1)
		go func() { defer all.Done(); time.Sleep(time.Duration(i) * time.Minute) }()
	}
	ticker, done, ticks := time.NewTicker(time.Minute), make(chan bool), 0
	time.AfterFunc(time.Hour+time.Second, func() { close(done) })
	for open := true; open; {
		select {
		case <-ticker.C:
			ticks++
			runtime.GC()
		case <-done:
			open = false
		}
	}
	all.Wait()
	fmt.Println(ticks, int(time.Since(start).Minutes()))
}
GO
  (cd "$folder" && CGO_ENABLED=0 go build -o go-program main.go)
  version=(go version)
  check 'Go, static' 5940 '60 99' "$folder/go-program"
fi
if has python3; then
  cat >"$folder/waits.py" <<'PY'
import asyncio, subprocess, threading, time

start = time.monotonic()

async def all_sleep():
    async def one(seconds):
        await asyncio.sleep(seconds)
        return seconds
    return sum(await asyncio.gather(*map(one, range(200))))

total = asyncio.run(all_sleep())
rang = threading.Event()
threading.Timer(600, rang.set).start()
assert rang.wait(1000) and not threading.Event().wait(50)
subprocess.run(["sleep", "1000"], check=True)
try:
    subprocess.run(["sleep", "100"], timeout=20)
except subprocess.TimeoutExpired:
    print(total, int(time.monotonic() - start) // 10)
PY
  version=(python3 --version)
  check 'Python' 1869 '19900 186' python3 "$folder/waits.py"
  cat >"$folder/proxy.py" <<'PY'
# A client, a proxy and a server, each a process. The server drops one request of seven, and answers
# one of five late. The proxy waits 2 s for the server. The client retries with a backoff that
# doubles, until its deadline. Each message is written in two parts, which Nagle's algorithm and a
# delayed acknowledgement hold back for 40 ms of real time.
import os, select, socket, sys, time

def listen():
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, listener.getsockname()[1]

def send(to, text):
    to.sendall(text[:4])
    to.sendall(text[4:])

def receive(of, seconds):
    text = b""
    while not text.endswith(b"\n"):
        if not select.select([of], [], [], seconds)[0]:
            return None
        part = of.recv(100)
        if not part:
            sys.exit(0)
        text += part
    return text

def serve(listener):
    peer = listener.accept()[0]
    count = 0
    while True:
        text = receive(peer, None)
        count += 1
        if count % 7 == 0:
            continue
        if count % 5 == 0:
            time.sleep(1.5)
        send(peer, text)

def relay(listener, port):
    server = socket.create_connection(("127.0.0.1", port))
    peer = listener.accept()[0]
    while True:
        send(server, receive(peer, None))
        answer = receive(server, 2)
        send(peer, answer or b"fail\n")

servers, port = listen()
proxies, front = listen()
if os.fork() == 0:
    serve(servers)
if os.fork() == 0:
    relay(proxies, port)
client = socket.create_connection(("127.0.0.1", front))
begin = time.monotonic()
failed = late = 0
for number in range(100):
    deadline, backoff = time.monotonic() + 60, 1
    while True:
        send(client, b"request %d\n" % number)
        sent = time.monotonic()
        answer = receive(client, 5)
        if answer is None:
            sys.exit("the proxy has not answered in 5 s")
        if answer != b"fail\n":
            assert answer == b"request %d\n" % number, answer
            late += time.monotonic() - sent > 1.4
            break
        failed += 1
        assert time.monotonic() < deadline
        time.sleep(backoff)
        backoff *= 2
print(failed, late, int(time.monotonic() - begin) // 10)
PY
  check 'a client, a proxy and a server' 78 '16 20 7' python3 "$folder/proxy.py"
fi
if has node; then
  cat >"$folder/waits.js" <<'JS'
const start = Date.now();
let ticks = 0;
const interval = setInterval(() => {
  if (++ticks < 100) return;
  clearInterval(interval);
  setTimeout(() => console.log(ticks, Math.round((Date.now() - start) / 1e4)), 3600e3);
}, 1000);
JS
  version=(node --version)
  check 'Node' 3700 '100 370' node "$folder/waits.js"
fi
if has java javac; then
  cat >"$folder/Waits.java" <<'JAVA'
import java.util.concurrent.*;
import java.util.concurrent.locks.LockSupport;
public class Waits {
  public static void main(String[] args) throws Exception {
    long start = System.nanoTime();
    var timers = Executors.newScheduledThreadPool(4);
    var ticks = new CountDownLatch(20);
    timers.scheduleAtFixedRate(ticks::countDown, 1, 1, TimeUnit.SECONDS);
    ticks.await();
    timers.shutdownNow();
    Thread.sleep(30_000);
    LockSupport.parkNanos(10_000_000_000L);
    System.out.println((System.nanoTime() - start) / 1_000_000_000L / 10);
  }
}
JAVA
  (cd "$folder" && javac Waits.java)
  version=(java -version)
  check 'Java' 60 6 java -cp "$folder" Waits
fi
if has redis-server redis-cli; then
  cat >"$folder/redis.sh" <<'SH'
redis-server --port 0 --unixsocket "$1/redis" --save '' --daemonize no >/dev/null &
ask() { redis-cli -s "$folder/redis" "$@"; }
folder=$1
until ask ping >/dev/null 2>&1; do sleep 0.1; done
ask set key value EX 3600 >/dev/null
sleep 3500
ask get key
sleep 110
ask exists key
ask shutdown nosave
wait
SH
  version=(redis-server --version)
  check 'redis' 3610 $'value\n0' sh "$folder/redis.sh" "$folder"
fi
if has ruby; then
  version=(ruby --version)
  check 'Ruby' 3600 1 ruby -e 't = Time.now; sleep 3600; puts ((Time.now - t) / 3600).round'
fi
if has perl; then
  # shellcheck disable=SC2016  # Perl's variables
  version=(perl -e 'printf "%vd\n", $^V')
  check 'Perl' 3600 1 perl -e '$t = time; sleep 3600; printf "%d\n", (time - $t) / 3600'
fi
if has tclsh; then
  echo 'after 3600000 {puts done; exit}; vwait forever' >"$folder/waits.tcl"
  version=(sh -c 'echo "puts [info patchlevel]" | tclsh')
  check 'Tcl' 3600 'done' tclsh "$folder/waits.tcl"
fi
if has ghc; then
  version=(ghc --version)
  echo 'main = Control.Concurrent.threadDelay 3600000000 >> putStrLn "done"' >"$folder/Waits.hs"
  sed -i '1i import qualified Control.Concurrent' "$folder/Waits.hs"
  ghc -v0 -outputdir "$folder" -o "$folder/waits-hs" "$folder/Waits.hs"
  check 'Haskell' 3600 'done' "$folder/waits-hs"
fi
if has octave-cli; then
  version=(octave-cli --version)
  check 'Octave' 3600 'done' octave-cli --eval 'pause(3600); disp("done")'
fi
if [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]; then
  cat >"$folder/rabbit.sh" <<'SH'
export HOME=$1 RABBITMQ_MNESIA_BASE=$1 RABBITMQ_LOG_BASE=$1 RABBITMQ_NODENAME=warp@localhost
export RABBITMQ_ENABLED_PLUGINS_FILE=$1/plugins RABBITMQ_NODE_PORT=18977 ERL_EPMD_PORT=18978
export RABBITMQ_GENERATED_CONFIG_DIR=$1 RABBITMQ_PID_FILE=$1/rabbit.pid
export PATH=/usr/lib/rabbitmq/bin:$PATH
rabbitmq-server >"$1/rabbit.log" 2>&1 &
rabbitmqctl wait --timeout 600 "$RABBITMQ_PID_FILE" >/dev/null
sleep 3600
rabbitmqctl -q eval '1 + 1.'
rabbitmqctl -q stop
wait
epmd -kill >/dev/null
SH
  version=(dpkg-query -W -f '${Version}' rabbitmq-server)
  allowed=700 limit=300
  check 'RabbitMQ' 3600 2 sh "$folder/rabbit.sh" "$folder"
  allowed=1 limit=60
fi
if has nginx python3; then
  cat >"$folder/nginx.conf" <<CONF
daemon off; master_process off; pid $folder/nginx.pid; error_log /dev/null;
events {}
http { access_log off; keepalive_timeout 75s;
  server { listen 127.0.0.1:18975; location / { return 200 ok; } } }
CONF
  cat >"$folder/nginx.py" <<'PY'
import socket, subprocess, sys, time

command = ["nginx", "-p", sys.argv[1], "-c", "nginx.conf"]
server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
while True:
    try:
        client = socket.create_connection(("127.0.0.1", 18975))
        break
    except OSError:
        time.sleep(0.1)
client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
assert b"ok" in client.recv(4096)
start = time.monotonic()
assert client.recv(1) == b""
print(round(time.monotonic() - start))
server.terminate()
server.wait()
PY
  version=(nginx -v)
  check 'nginx' 75 75 python3 "$folder/nginx.py" "$folder"
fi
postgres=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if [ -n "$postgres" ] && [ "$(id -u)" = 0 ] && has psql; then
  data=$(mktemp -d)
  trap 'rm -rf "$folder" "$data"' EXIT
  chown postgres "$data"
  (cd / && su postgres -c "$postgres/initdb -D $data/db" >/dev/null 2>&1)
  cat >"$data/run.sh" <<SH
cd $data
$postgres/pg_ctl -D db -o "-k $data -h ''" -l log -w start >/dev/null
psql -qAth $data postgres <<'SQL'
select extract(epoch from clock_timestamp())::int as begun \gset
select pg_sleep(3600);
select (extract(epoch from clock_timestamp())::int - :begun) / 10;
set statement_timeout = '30s';
select pg_sleep(100);
SQL
psql -qAth $data postgres <<'SQL' || echo idle
set idle_session_timeout = '60s';
\! sleep 90
select 'still connected';
SQL
$postgres/pg_ctl -D db -m fast stop >/dev/null
SH
  chmod 755 "$data/run.sh"
  version=("$postgres/postgres" --version)
  check 'PostgreSQL' 3720 $'\n360\nidle' su postgres -c "sh $data/run.sh"
fi
if [ "$done_programs" = 0 ]; then
  echo "no program has the name ${names[*]}, or its language is missing" >&2
  exit 1
fi
[ -z "$table" ] || write_table
echo "$done_programs programs, ${#missing[@]} left out${missing[*]:+ (${missing[*]} missing)}"
