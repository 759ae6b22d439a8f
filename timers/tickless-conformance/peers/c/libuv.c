// libuv: timers of whole milliseconds, each of them a handle that is closed before it is freed.
#include <stdlib.h>
#include <uv.h>

#include "loops.h"

struct loop {
  uv_loop_t uv;
  uint64_t opened;
  fired *fired;
  void *keys;
};

struct timer {
  uv_timer_t uv;
  uint32_t key;
};

static void fire(uv_timer_t *expired) {
  loop *own = (loop *)expired->loop;
  own->fired(own->keys, ((timer *)expired)->key);
}

static void closed(uv_handle_t *handle) { free(handle); }

static loop *open_loop(void) {
  loop *own = calloc(1, sizeof *own);
  uv_loop_init(&own->uv);
  own->opened = uv_now(&own->uv);
  return own;
}

static void move(loop *own, timer *timer, uint64_t at) {
  uv_update_time(&own->uv);
  uint64_t now = uv_now(&own->uv), deadline = own->opened + (at + 999999) / 1000000;
  uv_timer_start(&timer->uv, fire, deadline > now ? deadline - now : 0, 0);
}

static timer *arm(loop *own, uint32_t key, uint64_t at) {
  timer *new = calloc(1, sizeof *new);
  new->key = key;
  uv_timer_init(&own->uv, &new->uv);
  move(own, new, at);
  return new;
}

static void release(loop *own, timer *timer) {
  (void)own;
  uv_close((uv_handle_t *)&timer->uv, closed);
}

static bool cancel(loop *own, timer *timer) {
  bool was_pending = uv_is_active((uv_handle_t *)&timer->uv);
  release(own, timer);
  return was_pending;
}

static void turn(loop *own, fired *fired, void *keys) {
  own->fired = fired;
  own->keys = keys;
  uv_run(&own->uv, UV_RUN_NOWAIT);
}

static void close_loop(loop *own) {
  // Frees the closed handles.
  uv_run(&own->uv, UV_RUN_NOWAIT);
  uv_loop_close(&own->uv);
  free(own);
}

const struct library peers_libuv = {open_loop, arm, move, cancel, release, turn, close_loop};
