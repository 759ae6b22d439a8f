#!/usr/bin/env bash
# GLib 2.74.6 (Debian 2.74.6-2+deb12u9): g_timeout_add_seconds(1) fires after 0.75 to 1.75 s. The
# first expiry is moved to a phase of the second, which all programs with one session bus share (or,
# without one, with one HOSTNAME), so that they wake a machine together. Up to a quarter of a second
# is taken off for that: a timeout of a second can be over after 0.8 s, which one of
# g_timeout_add(1000) never is. Its page says that a function may be late, and that timers are
# grouped.
# Guessed before the run: at least one second, then rounded up to whole seconds.
. "$(dirname "$0")/lib.sh"
debian libglib2.0-0=2.74.6-2+deb12u9
cat >"$work/wait.py" <<'PY'
import ctypes, sys, time
glib = ctypes.CDLL("libglib-2.0.so.0")
glib.g_main_loop_new.restype = ctypes.c_void_p
loop = ctypes.c_void_p(glib.g_main_loop_new(None, 0))
ended = []

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def end(_):
    ended.append(time.monotonic())
    glib.g_main_loop_quit(loop)
    return 0

def wait(begin, add, time_of_it):
    """Waits at this part of a second; returns for how long, and at which part it ended."""
    time.sleep((begin - time.monotonic()) % 1)
    begun = time.monotonic()
    add(time_of_it, end, None)
    glib.g_main_loop_run(loop)
    return ended[-1] - begun, ended[-1] % 1

parts = [part / 10 for part in range(10)]
if sys.argv[1:] == ["phase"]:
    print(wait(0.3, glib.g_timeout_add_seconds, 1)[1])
else:
    seconds = [wait(part, glib.g_timeout_add_seconds, 1) for part in parts]
    plain = [wait(part, glib.g_timeout_add, 1000) for part in parts[:3]]
    print("seconds(1): shorter than 0.9 s:", any(took < 0.9 for took, _ in seconds))
    print("seconds(1): longer than 1.5 s:", any(took > 1.5 for took, _ in seconds))
    print("timeout(1000): shorter than 1 s:", any(took < 1.0 for took, _ in plain))
PY
unset DBUS_SESSION_BUS_ADDRESS
phase() { HOSTNAME=$1 python3 "$work/wait.py" phase; }
{
  HOSTNAME=one python3 "$work/wait.py"
  phases=$(phase one; sleep 0.37; phase one; sleep 0.21; phase other)
  python3 - $phases <<'PY'
import sys
one, same, other = map(float, sys.argv[1:])
apart = lambda a, b: abs((a - b + 0.5) % 1 - 0.5) > 0.1
print("two programs, one HOSTNAME: apart by more than 0.1 s:", apart(one, same))
print("another HOSTNAME: apart by more than 0.1 s:", apart(one, other))
PY
} >"$work/seen"
seen <<'SEEN'
seconds(1): shorter than 0.9 s: True
seconds(1): longer than 1.5 s: True
timeout(1000): shorter than 1 s: False
two programs, one HOSTNAME: apart by more than 0.1 s: False
another HOSTNAME: apart by more than 0.1 s: True
SEEN
