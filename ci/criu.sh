#!/usr/bin/env bash
# Stops a program with timers of all kinds by CRIU and restores it seconds later, five times: its
# counter went on, and CLOCK_MONOTONIC did not. No pending timer is early, and no new one late.
# Needs root, a C compiler, and a CRIU that knows the kernel (4.2 does for 6.18, 3.17 does not).
# Usage: [CRIU=PROGRAM] ci/criu.sh [SECONDS]   how long it is stopped each time: 5
. "$(dirname "$0")/lib.sh"

criu=${CRIU:-criu}
seconds=${1:-5}
[ "$(id -u)" = 0 ] || { skip criu.sh "CRIU needs root"; exit 0; }
command -v "$criu" >/dev/null || { skip criu.sh "CRIU is not installed"; exit 0; }
"$criu" check >/dev/null 2>&1 || { skip criu.sh "this CRIU does not know this kernel"; exit 0; }

work=$(mktemp -d)
child=
trap '[ -z "$child" ] || kill -9 "$child" 2>/dev/null; rm -rf "$work"' EXIT
timers/tickless-capi/install.sh --profile dev --prefix "$work/lib" >/dev/null
cc -O1 -I"$work/lib/include" timers/tickless-capi/tests/c/suspend.c -o "$work/suspend" \
  -L"$work/lib/lib" -Wl,-rpath,"$work/lib/lib" -ltickless

# The parent of all that CRIU restores, so that their exit status can be read.
setsid "$work/suspend" "$work/mark" </dev/null >"$work/out" 2>&1 &
child=$!
for round in 1 2 3 4 5; do
  until [ -e "$work/mark" ]; do
    kill -0 "$child" 2>/dev/null || { cat "$work/out" >&2; exit 1; }
    sleep 0.05
  done
  mkdir "$work/$round"
  "$criu" dump -t "$child" -D "$work/$round" --shell-job -v0
  sleep "$seconds"
  "$criu" restore -D "$work/$round" --shell-job --restore-detached -v0
  rm "$work/mark"
done
while kill -0 "$child" 2>/dev/null; do sleep 0.1; done
[ ! -s "$work/out" ] || { cat "$work/out" >&2; exit 1; }
echo "restored five times after $seconds s: no timer early or late"
