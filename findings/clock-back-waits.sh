#!/usr/bin/env bash
# Waits of 6 s, and a wall clock that is set back by an hour after 3 s (Debian bookworm). The plain
# sleeps of Racket 8.7, Gambit 4.9.3, PicoLisp 23.2 and Copas 1.2.0 go on for an hour more, as they
# compute the time that is left from the wall clock; so do Tcl 8.6.13, Expect 5.45.4, a limit of
# time of SWI-Prolog 9.0.4, and a transfer under a limit of rate of pv 1.6.20. The sleeps of
# SWI-Prolog, SBCL 2.2.9 and newLISP 10.7.5 end in time.
# Guessed before the run: Tcl, Expect, Racket and Copas do; Gambit, PicoLisp, SWI-Prolog and pv do
# not.
. "$(dirname "$0")/lib.sh"
debian racket=8.7+dfsg1-1 racket-common=8.7+dfsg1-1 gambc=4.9.3-1.2+b1 libgambit4=4.9.3-1.2+b1 \
  picolisp=23.2-1 swi-prolog-core=9.0.4+dfsg-2 libtcmalloc-minimal4=2.10-1 sbcl=2:2.2.9-1 \
  newlisp=10.7.5-2+b2 tcl8.6=8.6.13+dfsg-2 libtcl8.6=8.6.13+dfsg-2 expect=5.45.4-2+b1 \
  tcl-expect=5.45.4-2+b1 lua5.1=5.1.5-9 lua-copas=1.2.0-2 lua-coxpcall=1.17.0-1 \
  lua-socket=3.1.0-1+b1 lua-binaryheap=0.4-2 pv=1.6.20-1
clock_back
root=$work/root
lib=$root/usr/lib
lua=$root/usr/share/lua/5.1
LD_LIBRARY_PATH+=:$LD_LIBRARY_PATH/gambit4:$lib/tcltk/x86_64-linux-gnu/expect5.45.4
export SBCL_HOME=$lib/sbcl SWI_HOME_DIR=$lib/swi-prolog
export LUA_PATH="$lua/?.lua;$lua/?/init.lua" LUA_CPATH="$lib/x86_64-linux-gnu/lua/5.1/?.so"
# waits NAME COMMAND...: runs a command for at most 20 s.
waits() {
  local status=0
  export BACK="$work/back of $1"
  (sleep 3 && touch "$BACK") &
  LD_PRELOAD=$work/back.so timeout 20 "${@:2}" </dev/null >"$work/out of $1" 2>&1 || status=$?
  if [ $status = 124 ]; then
    echo "$1: goes on"
  else
    echo "$1: ends, with status $status"
  fi
}
{
  waits 'Racket, sleep' racket -X "$root/usr/share/racket/collects" -G "$root/etc/racket" \
    -I racket/base -e '(sleep 6)' &
  waits 'Gambit, thread-sleep!' gsi -e '(thread-sleep! 6)' &
  waits 'PicoLisp, wait' picolisp "$lib/picolisp/lib.l" -'wait 6000' -bye &
  waits 'SWI-Prolog, sleep' swipl -g 'sleep(6),halt' &
  waits 'SWI-Prolog, thread_get_message' swipl \
    -g '(thread_self(Me),thread_get_message(Me,none,[timeout(6)]);halt)' &
  waits 'SBCL, sleep' sbcl --non-interactive --eval '(sleep 6)' &
  waits 'newLISP, sleep' newlisp -e '(sleep 6000)' &
  waits 'Tcl, after' sh -c 'echo "after 6000 exit; vwait ever" >"$1" && exec tclsh8.6 "$1"' - \
    "$work/wait.tcl" &
  waits 'Expect, timeout' expect -c 'set timeout 6; spawn -noecho sleep 20; expect none' &
  waits 'Copas, sleep' lua5.1 -e \
    'c = require "copas"; c.addthread(function() c.sleep(6) os.exit() end) c.loop()' &
  waits 'pv, 600 kB at 100 kB per s' sh -c 'head -c 600000 /dev/zero | pv -q -L 100000' &
  wait
} | LC_ALL=C sort >"$work/seen"
seen <<'SEEN'
Copas, sleep: goes on
Expect, timeout: goes on
Gambit, thread-sleep!: goes on
PicoLisp, wait: goes on
Racket, sleep: goes on
SBCL, sleep: ends, with status 0
SWI-Prolog, sleep: ends, with status 0
SWI-Prolog, thread_get_message: goes on
Tcl, after: goes on
newLISP, sleep: ends, with status 0
pv, 600 kB at 100 kB per s: goes on
SEEN
