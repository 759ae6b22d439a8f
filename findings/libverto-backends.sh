#!/usr/bin/env bash
# libverto 0.3.1 (Debian 0.3.1-1): when a timeout ends depends on the loop beneath. With libev 4.33
# it counts from the time at which the loop last woke, so that 100 ms, asked for after 200 ms of
# work, are over at once; with GLib it counts from the call.
# Guessed before the run: the interface hides the loop, and all of them wait at least 100 ms.
. "$(dirname "$0")/lib.sh"
debian libverto1=0.3.1-1 libverto-dev=0.3.1-1 libverto-glib1=0.3.1-1 libverto-libev1=0.3.1-1 \
  libev4=1:4.33-1
cat >"$work/src/main.c" <<'C'
#include <stdio.h>
#include <time.h>
#include <verto.h>

static double start;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void end(verto_ctx *loop, verto_ev *event) {
  printf("at least 90 ms: %d\n", now() - start >= 90);
  verto_break(loop);
}

int main(int count, char **arguments) {
  verto_ctx *loop = verto_new(arguments[1], VERTO_EV_TYPE_TIMEOUT);
  struct timespec work = {0, 200000000};
  nanosleep(&work, NULL);
  start = now();
  verto_add_timeout(loop, VERTO_EV_FLAG_NONE, end, 100);
  verto_run(loop);
}
C
(cd "$work/root" && gcc -o ../main -I usr/include ../src/main.c "$(find . -name libverto.so.1)")
for loop in glib libev; do echo "$loop: $("$work/main" "$loop")"; done >"$work/seen"
seen <<'SEEN'
glib: at least 90 ms: 1
libev: at least 90 ms: 0
SEEN
