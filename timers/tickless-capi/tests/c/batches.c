/* Local timers that fire in batches, and timeouts that share one duration. */
#include "check.h"

#include <pthread.h>

enum { MANY = 1000 };

static void batch_operations(void) {
  static tickless_key_t keys[MANY], due[MANY];
  tickless_local_t *local;
  size_t count, timers, pending;
  void *data;
  OK(tickless_local_create_manual(0, 0, TICKLESS_PUSH_OUT_LAZY, &local));
  OK(tickless_local_reserve(local, MANY));
  for (size_t i = 0; i < MANY; i++) {
    uint32_t kind = i % 3 ? TICKLESS_COARSE : TICKLESS_PRECISE;
    OK(tickless_local_insert(local, kind, &keys[i], &keys[i]));
    OK(tickless_local_start(local, keys[i], 5 * MS));
  }
  OK(tickless_local_count(local, &timers, &pending));
  CHECK(timers == MANY && pending == MANY);
  for (size_t i = 0; i < 300; i++) OK(tickless_local_cancel(local, keys[i], NULL));
  OK(tickless_local_advance_into(local, 4 * MS, due, MANY, &count));
  CHECK(count == 0);
  size_t fired = 0, turns = 0;
  while (fired < MANY - 300) {
    OK(tickless_local_advance_into(local, 10 * MS, due, 128, &count));
    CHECK(count <= 128 && turns++ < MANY); /* cancelled timers count towards the room */
    for (size_t i = 0; i < count; i++) {
      OK(tickless_local_data(local, due[i], &data));
      CHECK(data >= (void *)&keys[300] && data < (void *)&keys[MANY]);
    }
    fired += count;
  }
  OK(tickless_local_count(local, NULL, &pending));
  CHECK(pending == 0);
  OK(tickless_local_advance_into(local, 11 * MS, NULL, 0, &count));
  IS(TICKLESS_NULL_POINTER, tickless_local_advance_into(local, 0, NULL, 1, &count));
  IS(TICKLESS_NULL_POINTER, tickless_local_advance_into(local, 0, due, 1, NULL));
  IS(TICKLESS_MISALIGNED, tickless_local_advance_into(
                              local, 0, (tickless_key_t *)((uintptr_t)due + 1), 1, &count));
  IS(TICKLESS_FULL, tickless_local_reserve(local, SIZE_MAX));
  IS(TICKLESS_NO_SUCH_TIMER, tickless_local_data(local, (tickless_key_t){0}, &data));
  OK(tickless_local_destroy(local));
}

struct seen {
  int count, again;
};

static void record(tickless_fixed_t *fixed, tickless_key_t key, void *data, void *context) {
  struct seen *seen = context;
  uint64_t next;
  CHECK(data == &seen->count);
  seen->count++;
  IS(TICKLESS_BUSY, tickless_fixed_advance(fixed, 0, 0, record, context, NULL));
  IS(TICKLESS_BUSY, tickless_fixed_destroy(fixed));
  OK(tickless_fixed_next_event(fixed, &next));
  if (seen->again-- > 0) {
    OK(tickless_fixed_start(fixed, key));
  } else {
    OK(tickless_fixed_remove(fixed, key, NULL));
  }
}

static void a_class_is_scaled(void) {
  struct seen seen = {.again = 1};
  tickless_fixed_t *fixed;
  tickless_key_t key, other;
  uint32_t http, dns;
  uint64_t next;
  size_t timers, pending, fired;
  bool was_pending;
  OK(tickless_fixed_create_manual(0, &fixed));
  OK(tickless_fixed_add_class(fixed, 60 * SECOND, &http));
  OK(tickless_fixed_add_class(fixed, 5 * SECOND, &dns));
  CHECK(http == 0 && dns == 1);
  OK(tickless_fixed_insert(fixed, http, &seen.count, &key));
  OK(tickless_fixed_insert(fixed, dns, NULL, &other));
  OK(tickless_fixed_next_event(fixed, &next));
  CHECK(next == TICKLESS_NEVER);
  OK(tickless_fixed_start(fixed, key));
  OK(tickless_fixed_start(fixed, other));
  OK(tickless_fixed_cancel(fixed, other, &was_pending));
  CHECK(was_pending);
  OK(tickless_fixed_advance(fixed, 20 * SECOND, 0, record, &seen, &fired));
  CHECK(fired == 0);
  OK(tickless_fixed_start(fixed, key)); /* a request restarts the 60 s */
  OK(tickless_fixed_scale(fixed, http, 0.5));
  OK(tickless_fixed_advance(fixed, 49 * SECOND, 0, record, &seen, &fired));
  CHECK(fired == 0);
  OK(tickless_fixed_advance(fixed, 55 * SECOND, 0, record, &seen, &fired));
  CHECK(fired == 1 && seen.count == 1);
  OK(tickless_fixed_set_after(fixed, http, 10 * SECOND)); /* 5 s: the factor stays */
  OK(tickless_fixed_advance(fixed, 65 * SECOND, 1, record, &seen, NULL));
  CHECK(seen.count == 2);
  OK(tickless_fixed_count(fixed, &timers, &pending));
  CHECK(timers == 1 && pending == 0);
  IS(TICKLESS_NO_SUCH_TIMER, tickless_fixed_start(fixed, key));
  IS(TICKLESS_NO_SUCH_TIMER, tickless_fixed_cancel(fixed, key, NULL));
  IS(TICKLESS_NO_SUCH_TIMER, tickless_fixed_remove(fixed, key, NULL));
  OK(tickless_fixed_destroy(fixed));
}

static void *other_thread(void *data) {
  uint64_t next;
  IS(TICKLESS_WRONG_THREAD, tickless_fixed_next_event(data, &next));
  IS(TICKLESS_WRONG_THREAD, tickless_fixed_destroy(data));
  OK(tickless_fixed_adopt(data));
  OK(tickless_fixed_next_event(data, &next));
  return NULL;
}

static void misuse(void) {
  tickless_fixed_t *fixed;
  tickless_key_t key;
  uint32_t number;
  pthread_t thread;
  IS(TICKLESS_NULL_POINTER, tickless_fixed_create(NULL));
  OK(tickless_fixed_destroy(NULL));
  IS(TICKLESS_NULL_POINTER, tickless_fixed_add_class(NULL, 1, &number));
  OK(tickless_fixed_create_manual(0, &fixed));
  IS(TICKLESS_OUT_OF_RANGE, tickless_fixed_add_class(fixed, -1, &number));
  IS(TICKLESS_OUT_OF_RANGE, tickless_fixed_insert(fixed, 0, NULL, &key));
  IS(TICKLESS_OUT_OF_RANGE, tickless_fixed_scale(fixed, 0, 1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_fixed_set_after(fixed, 3, 1));
  OK(tickless_fixed_add_class(fixed, SECOND, &number));
  IS(TICKLESS_OUT_OF_RANGE, tickless_fixed_scale(fixed, number, -0.5));
  IS(TICKLESS_NULL_POINTER, tickless_fixed_advance(fixed, 0, 0, NULL, NULL, NULL));
  CHECK(pthread_create(&thread, NULL, other_thread, fixed) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(tickless_fixed_adopt(fixed));
  OK(tickless_fixed_destroy(fixed));
}

int main(void) {
  batch_operations();
  a_class_is_scaled();
  misuse();
  return 0;
}
