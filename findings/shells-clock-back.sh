#!/usr/bin/env bash
# A command of 2 s under the `time` of a shell, and a wall clock that is set back by an hour while
# it runs (Debian bookworm). By the microseconds, bash 5.2.15 says no time at all or writes
# characters that are no digits: "+'m+(.438s"; tcsh 6.24.07 says 0; zsh 5.9, ksh93u+m 1.0.4, mksh
# 59c and GNU time 1.9 give a minus to the minutes and another to the seconds. fish 3.6.0, busybox
# 1.35.0 and elvish 0.19.2 say 2 s.
# Guessed before the run: bash, tcsh and GNU time say -3,598 s; the others do not read this clock.
. "$(dirname "$0")/lib.sh"
debian bash=5.2.15-2+b13 zsh=5.9-4+b15 zsh-common=5.9-4 ksh93u+m=1.0.4-3 mksh=59c-28+deb12u1 \
  tcsh=6.24.07-1 fish=3.6.0-3.1+deb12u1 fish-common=3.6.0-3.1+deb12u1 time=1.9-0.2 \
  busybox=1:1.35.0-4+deb12u1+b1 elvish=0.19.2-1+b1
clock_back
cat >"$work/command" <<'SH'
sleep 1
touch "$BACK"
sleep 1.4
SH
root=$work/root
export HOME=$work XDG_DATA_DIRS=$root/usr/share
# run NAME PATTERN COMMAND...: prints the wall time, which PATTERN is around, in whole seconds.
run() {
  local name=$1 pattern=$2
  BACK=$(mktemp -u -p "$work")
  export BACK
  LD_PRELOAD=$work/back.so "$root/${@:3}" 2>&1 |
    sed -nE "s/$pattern/\\1/; T; s/\\.[0-9]+//; s/^/$name: /; p"
}
timed="time sh $work/command"
{
  for eighth in 0 1 2 3 4 5 6 7; do
    (sleep 0.$((eighth * 125)) && run bash '^real\s+(.*)' bin/bash -c "$timed") &
  done | sed "s/: [^0-9]*'m.*/: no digits/" | sort -u
  run zsh '.*cpu (.*) total' bin/zsh -c "$timed"
  run ksh93 '^real\s+(.*)' bin/ksh93 -c "$timed"
  run mksh '^ *(.*) real.*' bin/mksh -c "$timed"
  run tcsh '.*s (.*) [0-9.]+%.*' bin/tcsh -fc "$timed"
  run 'GNU time' '.*system (.*)elapsed.*' usr/bin/time sh "$work/command"
  run fish 'Executed in *(.* secs).*' usr/bin/fish -Nc "$timed"
  run busybox '^real\s+(.*)' bin/busybox time sh "$work/command"
  run elvish '(.*)' usr/bin/elvish -norc -c "time { sh $work/command }"
} >"$work/seen"
seen <<'SEEN'
bash: 0m0s
bash: no digits
zsh: -59:-57
ksh93: -59m-58s
mksh: -59m-58s
tcsh: 0:00
GNU time: -59:-58
fish: 2 secs
busybox: 0m 2s
elvish: 2s
SEEN
