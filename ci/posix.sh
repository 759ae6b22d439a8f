#!/usr/bin/env bash
# Runs the Open POSIX suite's tests of timers, clocks and timed waits natively and in virtual time,
# and compares their verdicts. `bash ci/posix.sh FOLDER`: the folder `open_posix_testsuite` of the
# sources of LTP, which Debian has no package of. Tests that set the machine's clock are left out.
# LTP's own tests of system calls that wait run, too, if they are built: in its folder,
# `make autotools && ./configure && make -C lib`, and `make -C` in `testcases/kernel/syscalls/*`.
. "$(dirname "$0")/lib.sh"

suite=${1:-}
if [ ! -d "$suite/conformance/interfaces" ]; then
  skip ci/posix.sh "no sources; clone https://github.com/linux-test-project/ltp, and name its \
folder testcases/open_posix_testsuite"
  exit 0
fi
if ! command -v gcc >/dev/null; then
  skip ci/posix.sh "no gcc"
  exit 0
fi
suite=$(cd "$suite" && pwd)
cargo build --locked -q -p tickless-warp --examples
export warp=${CARGO_TARGET_DIR:-$PWD/target}/debug/examples/warp suite
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export folder

# try SOURCE: compiles a test, runs it both ways, and prints its name and both exit statuses.
try() {
  local name=${1#"$suite"/conformance/interfaces/} native=0 virtual=0
  local program=$folder/${name//\//-}
  gcc -w -std=gnu99 -D_GNU_SOURCE -DPATH_OFFSET=0 -I"$suite/include" -o "$program" "$1" \
    "$suite"/lib/*.c -pthread -lrt -lm >/dev/null 2>&1 || { echo "$name compiles not" && return; }
  (cd "$folder" && timeout -k 1 200 "$program" >/dev/null 2>&1 </dev/null) || native=$?
  (cd "$folder" && timeout -k 1 60 "$warp" "$program" >/dev/null 2>&1 </dev/null) || virtual=$?
  echo "$name $native $virtual"
}
export -f try

# try_built PROGRAM: runs a test of LTP, which has its own limit of time, both ways.
try_built() {
  local native=0 virtual=0
  (cd "$folder" && timeout -k 1 200 "$1" >/dev/null 2>&1 </dev/null) || native=$?
  (cd "$folder" && timeout -k 1 60 "$warp" "$1" >/dev/null 2>&1 </dev/null) || virtual=$?
  echo "ltp/${1##*/} $native $virtual"
}
export -f try_built

cd "$suite/conformance/interfaces"
find "$PWD"/{clock_getres,clock_gettime,clock_nanosleep,mq_timed*,nanosleep} \
  "$PWD"/{pthread_*timed*,sem_timedwait,sigtimedwait,timer_*} -name '[0-9]*-[0-9]*.c' \
  -not -path '*/speculative/*' | sort >"$folder/all"
xargs grep -L 'clock_settime\|settimeofday' <"$folder/all" >"$folder/chosen" || true
xargs -P 8 -I{} bash -c 'try {}' <"$folder/chosen" | sort >"$folder/verdicts"
for calls in nanosleep clock_nanosleep clock_gettime timerfd timer_{create,settime,gettime,delete} \
  timer_getoverrun setitimer getitimer alarm select poll ppoll pselect epoll_wait epoll_pwait \
  futex rt_sigtimedwait mq_timed{receive,send} recvmmsg; do
  find "$suite/../kernel/syscalls/$calls" -type f -name '*[0-9]' -perm -u+x 2>/dev/null || true
done | sort | xargs -r -I{} bash -c 'try_built {}' >>"$folder/verdicts"
differ=0 equal=0
while read -r name native virtual; do
  if [ "$native" = "$virtual" ]; then
    equal=$((equal + 1))
  elif [ "$native" = compiles ]; then
    echo "left out: $name does not compile"
  else
    differ=$((differ + 1))
    echo "$name: $native natively, $virtual in virtual time" >&2
  fi
done <"$folder/verdicts"
echo "ci/posix.sh: $equal tests with equal verdicts, $differ with others; \
$(($(wc -l <"$folder/all") - $(wc -l <"$folder/chosen"))) that set the clock were left out"
[ "$differ" = 0 ]
