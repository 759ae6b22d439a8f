/* Limiters (permits per period) and throttles (CPU time per period). */
#include "check.h"

#include <pthread.h>

static void refills_restore_permits(void) {
  tickless_timers_t *timers;
  tickless_limiter_t *limiter;
  tickless_quota_t quota = {.size = sizeof quota, .quota = 10, .period_ns = 100 * MS, .extra = 10};
  tickless_quota_counts_t counts = {.size = sizeof counts};
  uint64_t available, after;
  OK(tickless_timers_start_virtual(NULL, SECOND, &timers));
  OK(tickless_limiter_create(timers, &quota, &limiter));
  OK(tickless_limiter_try_acquire(limiter, 10));
  IS(TICKLESS_EMPTY, tickless_limiter_try_acquire(limiter, 1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_limiter_try_acquire(limiter, 21));
  IS(TICKLESS_OUT_OF_RANGE, tickless_limiter_retry_after(limiter, 21, &after));
  OK(tickless_limiter_retry_after(limiter, 11, &after));
  OK(tickless_virtual_advance(timers, (int64_t)after - 1));
  IS(TICKLESS_EMPTY, tickless_limiter_try_acquire(limiter, 11));
  OK(tickless_virtual_advance(timers, 1));
  OK(tickless_limiter_retry_after(limiter, 11, &after));
  CHECK(after == 0);
  OK(tickless_virtual_advance(timers, SECOND));
  OK(tickless_limiter_stats(limiter, &available, NULL));
  CHECK(available == 20);
  OK(tickless_limiter_try_acquire(limiter, 20));
  OK(tickless_limiter_stats(limiter, &available, &counts));
  CHECK(available == 0 && counts.used == 30 && counts.refills > 0 && counts.waiting == 0);
  IS(TICKLESS_BUSY, tickless_timers_stop(timers));
  OK(tickless_limiter_destroy(limiter));
  OK(tickless_timers_stop(timers));
}

static void *is_refused(void *limiter) {
  IS(TICKLESS_EMPTY, tickless_limiter_acquire(limiter, 1, INT64_MAX));
  return NULL;
}

static void *waits_until_closed(void *limiter) {
  IS(TICKLESS_SHUT, tickless_limiter_acquire(limiter, 1, INT64_MAX));
  return NULL;
}

/* Runs in a thread of its own: the standard library keeps 48 bytes for a thread that has waited,
 * until the thread ends. For the main thread, valgrind would report them as lost. */
static void *threads_wait_for_permits(void *unused) {
  tickless_timers_t *timers;
  tickless_limiter_t *limiter;
  tickless_quota_t quota = {.size = sizeof quota, .quota = 2, .period_ns = 20 * MS};
  uint64_t began, now;
  OK(tickless_timers_start(NULL, &timers));
  OK(tickless_limiter_create(timers, &quota, &limiter));
  OK(tickless_timers_now(timers, &began));
  for (int i = 0; i < 6; i++) OK(tickless_limiter_acquire(limiter, 1, INT64_MAX));
  OK(tickless_timers_now(timers, &now));
  CHECK(now - began > 20 * MS); /* at least one full period */
  OK(tickless_limiter_destroy(limiter));
  quota.period_ns = 3600 * SECOND, quota.waiting_max = 1;
  OK(tickless_limiter_create(timers, &quota, &limiter));
  OK(tickless_limiter_acquire(limiter, 2, SECOND));
  IS(TICKLESS_TIMED_OUT, tickless_limiter_acquire(limiter, 1, 10 * MS));
  IS(TICKLESS_OUT_OF_RANGE, tickless_limiter_acquire(limiter, 1, -1));
  pthread_t waiter;
  IS(0, pthread_create(&waiter, NULL, waits_until_closed, limiter));
  tickless_quota_counts_t counts = {.size = sizeof counts};
  do OK(tickless_limiter_stats(limiter, NULL, &counts)); while (counts.waiting == 0);
  /* One thread may wait, so the next ones do not. */
  pthread_t refused[4];
  for (int i = 0; i < 4; i++) IS(0, pthread_create(&refused[i], NULL, is_refused, limiter));
  for (int i = 0; i < 4; i++) IS(0, pthread_join(refused[i], NULL));
  OK(tickless_limiter_close(limiter));
  IS(0, pthread_join(waiter, NULL));
  IS(TICKLESS_SHUT, tickless_limiter_try_acquire(limiter, 1));
  OK(tickless_limiter_destroy(limiter));
  OK(tickless_timers_stop(timers));
  return unused;
}

static void each_key_has_its_own_permits(void) {
  tickless_timers_t *timers;
  tickless_keyed_t *keyed;
  tickless_quota_t quota = {.size = sizeof quota, .quota = 1, .period_ns = SECOND};
  const uint8_t alice[] = {'a', 'l', 'i', 'c', 'e'}, bob[] = {'b', 'o', 'b'};
  size_t keys;
  uint64_t after;
  OK(tickless_timers_start_virtual(NULL, SECOND, &timers));
  OK(tickless_keyed_create(timers, &quota, &keyed));
  OK(tickless_keyed_try_acquire(keyed, alice, sizeof alice, 1));
  IS(TICKLESS_EMPTY, tickless_keyed_try_acquire(keyed, alice, sizeof alice, 1));
  OK(tickless_keyed_retry_after(keyed, alice, sizeof alice, 1, &after));
  CHECK(after == (uint64_t)SECOND);
  OK(tickless_keyed_retry_after(keyed, bob, sizeof bob, 1, &after));
  CHECK(after == 0);
  OK(tickless_keyed_try_acquire(keyed, bob, sizeof bob, 1));
  OK(tickless_keyed_try_acquire(keyed, NULL, 0, 1)); /* an empty key is valid */
  OK(tickless_keyed_count(keyed, false, &keys));
  CHECK(keys == 3);
  IS(TICKLESS_NULL_POINTER, tickless_keyed_try_acquire(keyed, NULL, 1, 1));
  OK(tickless_virtual_advance(timers, 2 * SECOND));
  OK(tickless_keyed_try_acquire(keyed, alice, sizeof alice, 1));
  OK(tickless_keyed_count(keyed, true, &keys));
  CHECK(keys == 1);
  OK(tickless_keyed_destroy(keyed));
  OK(tickless_timers_stop(timers));
}

static tickless_worker_t *others;

static void *work(void *data) {
  tickless_worker_t *worker;
  bool waited = false;
  volatile uint64_t sum = 0;
  IS(TICKLESS_WRONG_THREAD, tickless_worker_check(others, NULL));
  IS(TICKLESS_WRONG_THREAD, tickless_worker_leave(others));
  OK(tickless_throttle_join(data, &worker));
  while (!waited) {
    OK(tickless_worker_check(worker, &waited));
    for (uint64_t i = 0; i < 10000; i++) sum += i;
  }
  OK(tickless_worker_rest(worker));
  OK(tickless_worker_leave(worker));
  return NULL;
}

static void threads_share_cpu_time(void) {
  tickless_timers_t *timers;
  tickless_throttle_t *throttle;
  tickless_quota_t quota = {.size = sizeof quota, .quota = 2 * MS, .period_ns = 20 * MS};
  tickless_quota_counts_t counts = {.size = sizeof counts};
  pthread_t threads[2];
  OK(tickless_timers_start(NULL, &timers));
  OK(tickless_throttle_create(timers, &quota, &throttle));
  OK(tickless_throttle_join(throttle, &others));
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, work, throttle) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  OK(tickless_throttle_stats(throttle, &counts));
  CHECK(counts.throttled >= 2 && counts.used > 2 * MS && counts.waited_ns > 0);
  OK(tickless_worker_leave(others));
  OK(tickless_throttle_destroy(throttle));
  OK(tickless_timers_stop(timers));
}

static void misuse(void) {
  tickless_timers_t *timers;
  tickless_limiter_t *limiter;
  tickless_keyed_t *keyed;
  tickless_throttle_t *throttle;
  tickless_worker_t *worker;
  size_t keys;
  tickless_quota_t quota = {.size = sizeof quota};
  OK(tickless_timers_start_virtual(NULL, SECOND, &timers));
  IS(TICKLESS_OUT_OF_RANGE, tickless_limiter_create(timers, &quota, &limiter));
  IS(TICKLESS_OUT_OF_RANGE, tickless_keyed_create(timers, &quota, &keyed));
  IS(TICKLESS_OUT_OF_RANGE, tickless_throttle_create(timers, &quota, &throttle));
  CHECK(!limiter && !keyed && !throttle);
  quota.quota = 1, quota.period_ns = SECOND, quota.phase = 77;
  IS(TICKLESS_UNSUPPORTED, tickless_limiter_create(timers, &quota, &limiter));
  quota.phase = 0, quota.waiting_max = 1;
  IS(TICKLESS_UNSUPPORTED, tickless_throttle_create(timers, &quota, &throttle));
  quota.phase = TICKLESS_PHASE_FIXED, quota.phase_value = 2 * SECOND;
  IS(TICKLESS_OUT_OF_RANGE, tickless_limiter_create(timers, &quota, &limiter));
  IS(TICKLESS_NULL_POINTER, tickless_limiter_create(timers, NULL, &limiter));
  IS(TICKLESS_NULL_POINTER, tickless_limiter_create(NULL, &quota, &limiter));
  IS(TICKLESS_NULL_POINTER, tickless_limiter_create(timers, &quota, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_limiter_try_acquire(NULL, 1));
  IS(TICKLESS_NULL_POINTER, tickless_limiter_acquire(NULL, 1, 0));
  IS(TICKLESS_NULL_POINTER, tickless_limiter_close(NULL));
  IS(TICKLESS_NULL_POINTER, tickless_limiter_stats(NULL, NULL, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_keyed_count(NULL, false, &keys));
  IS(TICKLESS_NULL_POINTER, tickless_throttle_join(NULL, &worker));
  IS(TICKLESS_NULL_POINTER, tickless_throttle_stats(NULL, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_worker_check(NULL, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_worker_rest(NULL));
  OK(tickless_limiter_destroy(NULL));
  OK(tickless_keyed_destroy(NULL));
  OK(tickless_throttle_destroy(NULL));
  OK(tickless_worker_leave(NULL));
  OK(tickless_timers_stop(timers));
}

int main(void) {
  refills_restore_permits();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, threads_wait_for_permits, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  each_key_has_its_own_permits();
  threads_share_cpu_time();
  misuse();
  return 0;
}
