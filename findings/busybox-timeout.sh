#!/usr/bin/env bash
# busybox 1.35.0 (Debian 1:1.35.0-4+deb12u1+b1): `timeout` takes fractions of a second and counts
# whole ones, at least one: a limit of 2.9 s ends after 2 s, and a command of 0.4 s finishes within
# a limit of 0.1 s. Its `sleep` takes fractions as they are.
# Guessed before the run: a limit of 0.5 s ends after 0.5 s.
. "$(dirname "$0")/lib.sh"
debian busybox=1:1.35.0-4+deb12u1+b1
busybox=$(find "$work" -name busybox -type f -perm -1)
run() {
  local begun status=0
  begun=$(date +%s%N)
  "$busybox" timeout "$1" "$busybox" sleep "$2" || status=$?
  echo "limit $1 s, sleep $2 s: status $status, $((($(date +%s%N) - begun) / 1000000000)) whole s"
} 2>/dev/null
{
  run 2.9 30
  run 1.9 30
  run 0.1 30
  run 0.1 0.4
} >"$work/seen"
seen <<'SEEN'
limit 2.9 s, sleep 30 s: status 143, 2 whole s
limit 1.9 s, sleep 30 s: status 143, 1 whole s
limit 0.1 s, sleep 30 s: status 143, 1 whole s
limit 0.1 s, sleep 0.4 s: status 0, 0 whole s
SEEN
