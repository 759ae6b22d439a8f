/* Local timers of one thread, in the program's own loop. */
#include "check.h"

#include <pthread.h>

struct loop {
  uint64_t now;
  size_t fired;
  int again;
  const char *order[16];
};

static void record(tickless_local_t *local, tickless_key_t key, void *data, void *context) {
  struct loop *loop = context;
  bool is = true;
  CHECK(loop->fired < 16);
  loop->order[loop->fired++] = data;
  OK(tickless_local_is_pending(local, key, &is));
  CHECK(!is);
  IS(TICKLESS_BUSY, tickless_local_advance(local, 0, 0, record, context, NULL));
  IS(TICKLESS_BUSY, tickless_local_destroy(local));
  IS(TICKLESS_BUSY, tickless_local_adopt(local));
  if (loop->again-- > 0) OK(tickless_local_start(local, key, MS));
}

static void *other_thread(void *data) {
  tickless_local_t *local = data;
  tickless_key_t key;
  uint64_t next;
  IS(TICKLESS_WRONG_THREAD, tickless_local_next_event(local, &next));
  IS(TICKLESS_WRONG_THREAD, tickless_local_insert(local, TICKLESS_COARSE, NULL, &key));
  IS(TICKLESS_WRONG_THREAD, tickless_local_advance(local, 0, 0, record, NULL, NULL));
  IS(TICKLESS_WRONG_THREAD, tickless_local_destroy(local));
  OK(tickless_local_adopt(local));
  OK(tickless_local_next_event(local, &next));
  return NULL;
}

static uint64_t monotonic_ns(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void ignore(tickless_local_t *local, tickless_key_t key, void *data, void *context) {
  (void)local, (void)key, (void)data, (void)context;
}

static void ignore_fixed(tickless_fixed_t *fixed, tickless_key_t key, void *data, void *context) {
  (void)fixed, (void)key, (void)data, (void)context;
}

static void fires_in_order(void) {
  struct loop loop = {.now = 1000};
  tickless_local_t *local;
  tickless_key_t coarse, precise, spare;
  uint64_t next;
  size_t fired;
  bool is;
  void *data;
  OK(tickless_local_create_manual(loop.now, 0, TICKLESS_PUSH_OUT_LAZY, &local));
  OK(tickless_local_next_event(local, &next));
  CHECK(next == TICKLESS_NEVER);
  OK(tickless_local_insert(local, TICKLESS_COARSE, "coarse", &coarse));
  OK(tickless_local_insert(local, TICKLESS_PRECISE, "precise", &precise));
  OK(tickless_local_insert(local, TICKLESS_COARSE, "spare", &spare));
  OK(tickless_local_start(local, coarse, 3 * MS));
  OK(tickless_local_start_range(local, precise, 1500, 2000));
  OK(tickless_local_start(local, spare, 2 * MS));
  OK(tickless_local_start(local, spare, 9 * MS));
  OK(tickless_local_cancel(local, spare, &is));
  CHECK(is);
  OK(tickless_local_next_event(local, &next));
  CHECK(next == 2000);
  OK(tickless_local_advance(local, 1400, 0, record, &loop, &fired));
  CHECK(fired == 0);
  loop.again = 1;
  while (next != TICKLESS_NEVER) {
    OK(tickless_local_advance(local, next, 1, record, &loop, NULL));
    OK(tickless_local_next_event(local, &next));
  }
  CHECK(loop.fired == 3 && strcmp(loop.order[0], "precise") == 0);
  CHECK(strcmp(loop.order[1], "precise") == 0 && strcmp(loop.order[2], "coarse") == 0);
  OK(tickless_local_remove(local, spare, &data));
  CHECK(strcmp(data, "spare") == 0);
  IS(TICKLESS_NO_SUCH_TIMER, tickless_local_remove(local, spare, &data));
  IS(TICKLESS_NO_SUCH_TIMER, tickless_local_start(local, spare, 0));
  IS(TICKLESS_NO_SUCH_TIMER, tickless_local_cancel(local, spare, NULL));
  IS(TICKLESS_NO_SUCH_TIMER, tickless_local_start(local, (tickless_key_t){0}, 0));
  IS(TICKLESS_OUT_OF_RANGE, tickless_local_start(local, coarse, -1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_local_start_range(local, coarse, 2, 1));
  OK(tickless_local_destroy(local));
}

/* By CLOCK_MONOTONIC, a duration counts from the call, although the turn has taken longer. */
static void never_early(void) {
  tickless_local_t *local;
  tickless_fixed_t *fixed;
  tickless_key_t key, idle;
  uint32_t number;
  OK(tickless_local_create(0, TICKLESS_PUSH_OUT_LAZY, &local));
  OK(tickless_local_insert(local, TICKLESS_PRECISE, NULL, &key));
  OK(tickless_fixed_create(&fixed));
  OK(tickless_fixed_add_class(fixed, 5 * MS, &number));
  OK(tickless_fixed_insert(fixed, number, NULL, &idle));
  for (int round = 0; round < 4; round++) {
    uint64_t begun = monotonic_ns(), now, end = begun + 10 * MS;
    size_t fired = 0;
    while (begun < end) begun = monotonic_ns();
    if (round % 2) {
      OK(tickless_local_start(local, key, 5 * MS));
    } else {
      OK(tickless_fixed_start(fixed, idle));
    }
    while (!fired) {
      if (round % 2) {
        OK(tickless_local_now(local, &now));
        OK(tickless_local_advance(local, now, 0, ignore, NULL, &fired));
      } else {
        OK(tickless_fixed_now(fixed, &now));
        OK(tickless_fixed_advance(fixed, now, 0, ignore_fixed, NULL, &fired));
      }
    }
    CHECK(monotonic_ns() - begun >= 5 * MS);
  }
  OK(tickless_fixed_destroy(fixed));
  OK(tickless_local_destroy(local));
}

static void misuse(void) {
  tickless_local_t *local;
  tickless_key_t key;
  uint64_t next;
  bool is;
  pthread_t thread;
  IS(TICKLESS_NULL_POINTER, tickless_local_create(0, 0, NULL));
  IS(TICKLESS_OUT_OF_RANGE, tickless_local_create(999, 0, &local));
  IS(TICKLESS_UNSUPPORTED, tickless_local_create(0, 2, &local));
  CHECK(!local);
  OK(tickless_local_destroy(NULL));
  IS(TICKLESS_NULL_POINTER, tickless_local_adopt(NULL));
  IS(TICKLESS_NULL_POINTER, tickless_local_insert(NULL, 0, NULL, &key));
  IS(TICKLESS_NULL_POINTER, tickless_local_remove(NULL, (tickless_key_t){0}, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_local_start(NULL, (tickless_key_t){0}, 0));
  IS(TICKLESS_NULL_POINTER, tickless_local_start_range(NULL, (tickless_key_t){0}, 0, 0));
  IS(TICKLESS_NULL_POINTER, tickless_local_cancel(NULL, (tickless_key_t){0}, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_local_is_pending(NULL, (tickless_key_t){0}, &is));
  IS(TICKLESS_NULL_POINTER, tickless_local_next_event(NULL, &next));
  IS(TICKLESS_NULL_POINTER, tickless_local_advance(NULL, 0, 0, record, NULL, NULL));
  OK(tickless_local_create_manual(0, 1000000, TICKLESS_PUSH_OUT_EAGER, &local));
  IS(TICKLESS_NULL_POINTER, tickless_local_insert(local, TICKLESS_COARSE, NULL, NULL));
  IS(TICKLESS_UNSUPPORTED, tickless_local_insert(local, TICKLESS_DEFERRED, NULL, &key));
  IS(TICKLESS_NULL_POINTER, tickless_local_next_event(local, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_local_is_pending(local, key, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_local_advance(local, 0, 0, NULL, NULL, NULL));
  CHECK(pthread_create(&thread, NULL, other_thread, local) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  IS(TICKLESS_WRONG_THREAD, tickless_local_next_event(local, &next));
  OK(tickless_local_adopt(local));
  OK(tickless_local_destroy(local));
}

int main(void) {
  fires_in_order();
  never_early();
  misuse();
  return 0;
}
