#!/usr/bin/env bash
# Ten timers that are set for one and the same instant: the order in which event loops of Debian 12
# run them. libuv 1.44.2 and tevent 0.14.1 run them as they were set. libev 4.33 and libevent 2.1.12
# run the first one, then the others from the last to the second; Asio 1.22.1 and sd-event 252 in an
# order of their heap.
# Guessed before the run: first come, first served in all of them, since all document timers as a
# queue by time.
. "$(dirname "$0")/lib.sh"
debian libev4=1:4.33-1 libev-dev=1:4.33-1 libtevent0=0.14.1-1 libtevent-dev=0.14.1-1 \
  libtalloc2=2.4.0-f2 libtalloc-dev=2.4.0-f2 libasio-dev=1:1.22.1-1 \
  libuv1=1.44.2-1+deb12u1 libuv1-dev=1.44.2-1+deb12u1 \
  libevent-core-2.1-7=2.1.12-stable-8+deb12u1 libevent-dev=2.1.12-stable-8+deb12u1 \
  libsystemd0=252.39-1~deb12u2 libsystemd-dev=252.39-1~deb12u2

# program NAME LIBRARY...: compiles and runs the program on standard input.
program() {
  local name=$1 headers=${LD_LIBRARY_PATH%/lib/*}/include
  shift
  c++ -std=c++17 -x c++ - -o "$work/program" -I"$headers" -I"$headers/x86_64-linux-gnu" \
    -L"$LD_LIBRARY_PATH" -pthread "$@"
  echo "$name: $("$work/program" | xargs)" >>"$work/seen"
}

program libuv -luv <<'C'
#include <stdio.h>
#include <uv.h>
static uv_timer_t timers[11];
static void ring(uv_timer_t *timer) { printf("%d ", (int)(timer - timers)); }
int main() {
  for (int i = 1; i <= 10; i++) {
    uv_timer_init(uv_default_loop(), &timers[i]);
    uv_timer_start(&timers[i], ring, 20, 0);
  }
  return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
C
program tevent -ltevent -ltalloc <<'C'
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <talloc.h>
extern "C" {
#include <tevent.h>
}
static void ring(tevent_context *, tevent_timer *, timeval, void *number) {
  printf("%ld ", (long)number);
}
int main() {
  tevent_context *loop = tevent_context_init(NULL);
  timeval at = tevent_timeval_current_ofs(0, 20000);
  for (long i = 1; i <= 10; i++) tevent_add_timer(loop, loop, at, ring, (void *)i);
  for (int i = 0; i < 10; i++) tevent_loop_once(loop);
}
C
program libev -lev <<'C'
#include <ev.h>
#include <stdio.h>
static ev_timer timers[11];
static void ring(struct ev_loop *, ev_timer *timer, int) { printf("%d ", (int)(timer - timers)); }
int main() {
  struct ev_loop *loop = ev_default_loop(0);
  for (int i = 1; i <= 10; i++) {
    ev_timer_init(&timers[i], ring, 0.02, 0);
    ev_timer_start(loop, &timers[i]);
  }
  ev_run(loop, 0);
}
C
# libevent reads the clock for each timer, except inside of a callback.
program libevent -l:libevent_core-2.1.so.7 <<'C'
#include <event2/event.h>
#include <stdio.h>
static event_base *base;
static void ring(int, short, void *number) { printf("%ld ", (long)number); }
static void set(int, short, void *) {
  timeval after = {0, 20000};
  for (long i = 1; i <= 10; i++) event_add(evtimer_new(base, ring, (void *)i), &after);
}
int main() {
  base = event_base_new();
  timeval soon = {0, 1000};
  event_base_once(base, -1, EV_TIMEOUT, set, NULL, &soon);
  event_base_dispatch(base);
}
C
program Asio -DASIO_STANDALONE <<'C'
#include <asio.hpp>
#include <cstdio>
#include <deque>
int main() {
  asio::io_context loop;
  auto at = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  std::deque<asio::steady_timer> timers;
  for (int i = 1; i <= 10; i++) {
    timers.emplace_back(loop, at).async_wait([i](asio::error_code) { std::printf("%d ", i); });
  }
  loop.run();
}
C
program sd-event -l:libsystemd.so.0 <<'C'
#include <stdio.h>
#include <systemd/sd-event.h>
#include <time.h>
static int ring(sd_event_source *, uint64_t, void *number) {
  return printf("%ld ", (long)number) < 0;
}
int main() {
  sd_event *loop;
  uint64_t now;
  sd_event_default(&loop);
  sd_event_now(loop, CLOCK_MONOTONIC, &now);
  for (long i = 1; i <= 10; i++) {
    sd_event_add_time(loop, NULL, CLOCK_MONOTONIC, now + 20000, 1, ring, (void *)i);
  }
  for (int i = 0; i < 10; i++) sd_event_run(loop, 1000000);
}
C
seen <<'SEEN'
libuv: 1 2 3 4 5 6 7 8 9 10
tevent: 1 2 3 4 5 6 7 8 9 10
libev: 1 10 9 8 7 6 5 4 3 2
libevent: 1 10 9 8 7 6 5 4 3 2
Asio: 1 3 7 10 9 6 8 5 2 4
sd-event: 1 7 6 3 10 5 9 8 4 2
SEEN
