/* Misuse that the library detects: every kind returns its error and changes nothing. */
#include "check.h"

#include <stdatomic.h>

static tickless_timers_t *timers;
static tickless_timer_t timer, other;
static tickless_periodic_t periodic;
static atomic_int step;

static void nothing(tickless_fired_t *fired, void *data) {
  (void)fired;
  (void)data;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * SECOND + time.tv_nsec;
}

/* How long a stop takes that is refused because the timers are in use. */
static int64_t refusal_takes(void) {
  int64_t begun = now();
  IS(TICKLESS_BUSY, tickless_timers_stop(timers));
  return now() - begun;
}

static void null_pointers(void) {
  tickless_options_t options = {.size = sizeof options};
  tickless_cancel_t found;
  uint64_t ns;
  bool is;
  IS(TICKLESS_NULL_POINTER, tickless_timers_start(&options, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_timers_now(NULL, &ns));
  IS(TICKLESS_NULL_POINTER, tickless_timers_now(timers, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_timers_stats(timers, 0, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_timer_init(NULL, timers, TICKLESS_COARSE, nothing, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_timer_init(&timer, NULL, TICKLESS_COARSE, nothing, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_timer_init(&timer, timers, TICKLESS_COARSE, NULL, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_timer_start(NULL, 0));
  IS(TICKLESS_NULL_POINTER, tickless_timer_start_slack(NULL, 0, 0));
  IS(TICKLESS_NULL_POINTER, tickless_timer_start_at(NULL, 0));
  IS(TICKLESS_NULL_POINTER, tickless_timer_start_range(NULL, 0, 0));
  IS(TICKLESS_NULL_POINTER, tickless_timer_reduce(NULL, 0));
  IS(TICKLESS_NULL_POINTER, tickless_timer_try_cancel(NULL, &found));
  IS(TICKLESS_NULL_POINTER, tickless_timer_cancel(NULL, &found));
  IS(TICKLESS_NULL_POINTER, tickless_timer_cancel_sync(NULL, &found));
  IS(TICKLESS_NULL_POINTER, tickless_timer_cancel_single_shot(NULL, &found));
  IS(TICKLESS_NULL_POINTER, tickless_timer_shutdown_sync(NULL, &found));
  IS(TICKLESS_NULL_POINTER, tickless_timer_is_active(NULL, &is));
  IS(TICKLESS_NULL_POINTER, tickless_timer_is_pending(NULL, &is));
  IS(TICKLESS_NULL_POINTER, tickless_timer_destroy(NULL));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_init(NULL, timers, NULL, nothing, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_init(&periodic, NULL, NULL, nothing, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_init(&periodic, timers, NULL, NULL, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_start(NULL, MS));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_start_at(NULL, 0, MS));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_cancel(NULL, &found));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_cancel_sync(NULL, &found));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_is_active(NULL, &is));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_phase_offset(NULL, &ns));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_destroy(NULL));
  IS(TICKLESS_NULL_POINTER, tickless_fired_info(NULL, &ns, &ns, NULL, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_fired_now(NULL, &ns));
  IS(TICKLESS_NULL_POINTER, tickless_fired_restart(NULL, 0));
  IS(TICKLESS_NULL_POINTER, tickless_fired_restart_range(NULL, 0, 0));
  IS(TICKLESS_NULL_POINTER, tickless_fired_forward(NULL, MS, &ns));
  IS(TICKLESS_NULL_POINTER, tickless_fired_stop(NULL));
}

static void states(void) {
  tickless_timer_t copy;
  uint64_t ns, no_timers[4] = {0};
  bool is;
  IS(TICKLESS_NOT_INITIALISED, tickless_timers_now((tickless_timers_t *)no_timers, &ns));
  IS(TICKLESS_NOT_INITIALISED,
     tickless_timers_now((tickless_timers_t *)((char *)no_timers + 1), &ns));
  IS(TICKLESS_NOT_INITIALISED, tickless_local_next_event((tickless_local_t *)no_timers, &ns));
  /* Calls before init. */
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_start(&timer, 0));
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_cancel(&timer, NULL));
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_destroy(&timer));
  IS(TICKLESS_NOT_INITIALISED, tickless_periodic_start(&periodic, MS));
  IS(TICKLESS_NOT_INITIALISED, tickless_periodic_destroy(&periodic));
  /* A second init. */
  OK(tickless_timer_init(&timer, timers, TICKLESS_COARSE, nothing, NULL));
  OK(tickless_timer_start(&timer, 3600 * SECOND));
  IS(TICKLESS_ALREADY_INITIALISED,
     tickless_timer_init(&timer, timers, TICKLESS_PRECISE, nothing, NULL));
  OK(tickless_periodic_init(&periodic, timers, NULL, nothing, NULL));
  IS(TICKLESS_ALREADY_INITIALISED,
     tickless_periodic_init(&periodic, timers, NULL, nothing, NULL));
  OK(tickless_timer_is_pending(&timer, &is));
  CHECK(is);
  /* A copy is not a timer, and neither is a timer of another type. */
  memcpy(&copy, &timer, sizeof copy);
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_cancel(&copy, NULL));
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_destroy(&copy));
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_cancel((tickless_timer_t *)&periodic, NULL));
  /* Memory with other contents. */
  memset(&copy, 0xff, sizeof copy);
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_start(&copy, 0));
  /* Misaligned pointers. */
  IS(TICKLESS_MISALIGNED, tickless_timer_start((tickless_timer_t *)((char *)&timer + 4), 0));
  IS(TICKLESS_MISALIGNED, tickless_timer_init((tickless_timer_t *)((char *)&other + 1), timers,
                                              TICKLESS_COARSE, nothing, NULL));
  /* Stopping timers that are in use: refused after 100 ms. A busy machine may make one slow. */
  int64_t first = refusal_takes();
  OK(tickless_timer_destroy(&timer));
  int64_t second = refusal_takes();
  OK(tickless_periodic_destroy(&periodic));
  CHECK(first >= 100 * MS && second >= 100 * MS);
  CHECK(first < 2 * SECOND || second < 2 * SECOND);
  /* Calls after destroy. */
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_start(&timer, 0));
  CHECK(strstr(tickless_error_text(), "destroyed"));
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_destroy(&timer));
  IS(TICKLESS_NOT_INITIALISED, tickless_periodic_destroy(&periodic));
  OK(tickless_timer_init(&timer, timers, TICKLESS_PRECISE, nothing, NULL));
  OK(tickless_timer_destroy(&timer));
}

static void numbers(void) {
  const uint32_t kinds[] = {2, 255, TICKLESS_COARSE | TICKLESS_DEFERRED,
                            TICKLESS_PRECISE | TICKLESS_DEFERRABLE, 2048, 1u << 16};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    IS(TICKLESS_UNSUPPORTED, tickless_timer_init(&timer, timers, kinds[i], nothing, NULL));
  IS(TICKLESS_NO_SUCH_BASE,
     tickless_timer_init(&timer, timers, TICKLESS_PIN(2), nothing, NULL));
  IS(TICKLESS_NO_SUCH_BASE,
     tickless_timer_init(&timer, timers, TICKLESS_PRECISE | TICKLESS_PIN(65535), nothing, NULL));
  OK(tickless_timer_init(&timer, timers, TICKLESS_PRECISE, nothing, NULL));
  OK(tickless_timer_init(&other, timers, TICKLESS_COARSE, nothing, NULL));
  OK(tickless_periodic_init(&periodic, timers, NULL, nothing, NULL));
  IS(TICKLESS_OUT_OF_RANGE, tickless_timer_start(&timer, -1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_timer_start(&timer, INT64_MIN));
  IS(TICKLESS_OUT_OF_RANGE, tickless_timer_start_slack(&timer, 0, -1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_timer_start_range(&timer, 2, 1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_timer_reduce(&other, -1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_periodic_start(&periodic, 0));
  IS(TICKLESS_OUT_OF_RANGE, tickless_periodic_start(&periodic, -1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_periodic_start_at(&periodic, 0, 0));
  IS(TICKLESS_UNSUPPORTED, tickless_timer_reduce(&timer, MS));
  IS(TICKLESS_UNSUPPORTED, tickless_timer_start_slack(&other, MS, MS));
  IS(TICKLESS_UNSUPPORTED, tickless_timer_start_range(&other, 0, 1));
  OK(tickless_timer_start_slack(&timer, INT64_MAX, INT64_MAX));
  OK(tickless_periodic_start(&periodic, INT64_MAX));
  OK(tickless_timer_destroy(&timer));
  OK(tickless_timer_destroy(&other));
  OK(tickless_periodic_destroy(&periodic));
}

static void structs(void) {
  const tickless_options_t good = {.size = sizeof good, .bases = 1};
  tickless_options_t bad;
  tickless_timers_t *none = timers;
#define BAD(status, change)                       \
  bad = good;                                     \
  bad.change;                                     \
  IS(status, tickless_timers_start(&bad, &none)); \
  CHECK(!none)
  BAD(TICKLESS_UNSUPPORTED, size = 0);
  BAD(TICKLESS_UNSUPPORTED, size = SIZE_MAX);
  BAD(TICKLESS_UNSUPPORTED, flags = 8);
  BAD(TICKLESS_OUT_OF_RANGE, bases = 65536);
  BAD(TICKLESS_OUT_OF_RANGE, tick_ns = 999);
  BAD(TICKLESS_OUT_OF_RANGE, tick_ns = 1000000001);
  /* Structs of a later version: unknown fields must be zero. */
  struct {
    tickless_options_t known;
    uint64_t more;
  } later = {{.size = sizeof later, .bases = 1}, 1};
  IS(TICKLESS_UNSUPPORTED, tickless_timers_start(&later.known, &none));
  later.more = 0;
  OK(tickless_timers_start(&later.known, &none));
  OK(tickless_timers_stop(none));
  tickless_periodic_options_t how = {.size = sizeof how, .missed = 3};
  IS(TICKLESS_UNSUPPORTED, tickless_periodic_init(&periodic, timers, &how, nothing, NULL));
  how.missed = 0;
  how.phase = 5;
  IS(TICKLESS_UNSUPPORTED, tickless_periodic_init(&periodic, timers, &how, nothing, NULL));
  how.phase = TICKLESS_PHASE_SPREAD;
  how.phase_value = 1;
  IS(TICKLESS_UNSUPPORTED, tickless_periodic_init(&periodic, timers, &how, nothing, NULL));
  tickless_stats_t stats = {.size = 3};
  IS(TICKLESS_UNSUPPORTED, tickless_timers_stats(timers, 0, &stats));
  stats.size = sizeof stats;
  IS(TICKLESS_NO_SUCH_BASE, tickless_timers_stats(timers, 2, &stats));
  IS(TICKLESS_ABI_MISMATCH, tickless_abi_check(TICKLESS_ABI + 1, sizeof timer, sizeof periodic));
  IS(TICKLESS_ABI_MISMATCH, tickless_abi_check(TICKLESS_ABI, 64, sizeof periodic));
}

/* In the timer's own callback, waiting calls and numbers out of range are refused. */
static void in_its_own_callback(tickless_fired_t *fired, void *data) {
  tickless_cancel_t found = TICKLESS_CANCEL_IDLE;
  (void)data;
  IS(TICKLESS_OUT_OF_RANGE, tickless_fired_restart(fired, -1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_fired_restart_range(fired, 2, 1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_fired_forward(fired, 0, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_fired_now(fired, NULL));
  IS(TICKLESS_WOULD_DEADLOCK, tickless_timer_cancel_sync(&timer, &found));
  CHECK(found == TICKLESS_CANCEL_RUNNING);
  IS(TICKLESS_WOULD_DEADLOCK, tickless_timer_cancel_single_shot(&timer, NULL));
  OK(tickless_timer_start(&timer, 0));
  IS(TICKLESS_WOULD_DEADLOCK, tickless_timers_stop(timers));
  IS(TICKLESS_WOULD_DEADLOCK, tickless_timer_shutdown_sync(&timer, &found));
  IS(TICKLESS_SHUT, tickless_timer_start(&timer, 0));
  atomic_store(&step, 1);
}

/* Two callbacks wait for each other's end: one of them is refused. */
struct pair {
  tickless_timer_t timer;
  struct pair *other;
  atomic_int has_begun;
  atomic_int refused;
  atomic_int has_ended;
};

static void destroy_the_other(tickless_fired_t *fired, void *data) {
  struct pair *own = data;
  (void)fired;
  atomic_store(&own->has_begun, 1);
  UNTIL(atomic_load(&own->other->has_begun));
  tickless_status_t status = tickless_timer_destroy(&own->other->timer);
  CHECK(status == TICKLESS_OK || status == TICKLESS_WOULD_DEADLOCK);
  atomic_store(&own->refused, status == TICKLESS_WOULD_DEADLOCK);
  atomic_store(&own->has_ended, 1);
}

static void callbacks(void) {
  OK(tickless_timer_init(&timer, timers, TICKLESS_PRECISE, in_its_own_callback, NULL));
  OK(tickless_timer_start(&timer, 0));
  UNTIL(atomic_load(&step) == 1);
  OK(tickless_timer_destroy(&timer));

  static struct pair a, b;
  a.other = &b;
  b.other = &a;
  OK(tickless_timer_init(&a.timer, timers, TICKLESS_PRECISE | TICKLESS_PIN(0), destroy_the_other,
                         &a));
  OK(tickless_timer_init(&b.timer, timers, TICKLESS_COARSE | TICKLESS_PIN(1), destroy_the_other,
                         &b));
  OK(tickless_timer_start(&a.timer, 0));
  OK(tickless_timer_start(&b.timer, 0));
  UNTIL(atomic_load(&a.has_ended) && atomic_load(&b.has_ended));
  CHECK(atomic_load(&a.refused) + atomic_load(&b.refused) == 1);
  /* The timer whose destruction was refused is shut down, but still exists. */
  tickless_timer_t *left = atomic_load(&a.refused) ? &b.timer : &a.timer;
  IS(TICKLESS_SHUT, tickless_timer_start(left, 0));
  OK(tickless_timer_destroy(left));
  IS(TICKLESS_NOT_INITIALISED, tickless_timer_destroy(left == &a.timer ? &b.timer : &a.timer));
}

int main(void) {
  tickless_options_t two = {.size = sizeof two, .bases = 2};
  CHECK(strlen(tickless_error_text()) == 0);
  OK(tickless_timers_start(&two, &timers));
  null_pointers();
  states();
  numbers();
  structs();
  callbacks();
  CHECK(strcmp(tickless_status_name(TICKLESS_BUSY), "TICKLESS_BUSY") == 0);
  CHECK(strcmp(tickless_status_name(-5), "unknown") == 0);
  OK(tickless_timers_stop(timers));
  return 0;
}
