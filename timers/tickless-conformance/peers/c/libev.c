// libev, as its manual says: a timeout that is often moved is a repeating timer, moved by
// `ev_timer_again`, and stopped by its callback.
#include <ev.h>
#include <stdlib.h>
#include <time.h>

#include "loops.h"

struct loop {
  struct ev_loop *ev;
  uint64_t opened;
  fired *fired;
  void *keys;
};

struct timer {
  ev_timer ev;
  uint32_t key;
};

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void fire(struct ev_loop *ev, ev_timer *expired, int events) {
  (void)events;
  loop *own = ev_userdata(ev);
  ev_timer_stop(ev, expired);
  own->fired(own->keys, ((timer *)expired)->key);
}

static loop *open_loop(void) {
  loop *own = calloc(1, sizeof *own);
  own->ev = ev_loop_new(EVFLAG_AUTO);
  own->opened = now();
  ev_set_userdata(own->ev, own);
  return own;
}

static void move(loop *own, timer *timer, uint64_t at) {
  int64_t after = (int64_t)(own->opened + at - now());
  ev_now_update(own->ev);
  // A repeating timer repeats after more than zero.
  timer->ev.repeat = after > 0 ? (double)after / 1e9 : 1e-9;
  ev_timer_again(own->ev, &timer->ev);
}

static timer *arm(loop *own, uint32_t key, uint64_t at) {
  timer *new = calloc(1, sizeof *new);
  new->key = key;
  ev_init(&new->ev, fire);
  move(own, new, at);
  return new;
}

static void release(loop *own, timer *timer) {
  ev_timer_stop(own->ev, &timer->ev);
  free(timer);
}

static bool cancel(loop *own, timer *timer) {
  bool was_pending = ev_is_active(&timer->ev);
  release(own, timer);
  return was_pending;
}

static void turn(loop *own, fired *fired, void *keys) {
  own->fired = fired;
  own->keys = keys;
  ev_run(own->ev, EVRUN_NOWAIT);
}

static void close_loop(loop *own) {
  ev_loop_destroy(own->ev);
  free(own);
}

const struct library peers_libev = {open_loop, arm, move, cancel, release, turn, close_loop};
