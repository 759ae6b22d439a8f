/* Coarse and precise timers: every way to start and to cancel, and what callbacks read and request.
 * */
#include "check.h"

#include <stdatomic.h>

static tickless_timers_t *timers;

struct tally {
  atomic_int fired;
  atomic_ullong late_ns;
  atomic_int restarts;
  atomic_int go_on;
};

static void count(tickless_fired_t *fired, void *data) {
  struct tally *tally = data;
  uint64_t deadline, found, now, overruns;
  uint32_t base;
  OK(tickless_fired_info(fired, &deadline, &found, &base, &overruns));
  OK(tickless_fired_info(fired, NULL, NULL, NULL, NULL));
  OK(tickless_fired_now(fired, &now));
  /* A timer is never early. */
  CHECK(deadline <= found && found <= now && base < 2 && overruns == 0);
  atomic_store(&tally->late_ns, found - deadline);
  atomic_fetch_add(&tally->fired, 1);
}

static void restart(tickless_fired_t *fired, void *data) {
  struct tally *tally = data;
  atomic_fetch_add(&tally->fired, 1);
  if (atomic_fetch_sub(&tally->restarts, 1) > 0) {
    OK(tickless_fired_restart(fired, MS));
  } else {
    OK(tickless_fired_restart_range(fired, 0, 0));
    OK(tickless_fired_stop(fired));
  }
}

static void forward(tickless_fired_t *fired, void *data) {
  struct tally *tally = data;
  uint64_t deadline, overruns;
  OK(tickless_fired_info(fired, &deadline, NULL, NULL, NULL));
  CHECK(deadline % MS == 0);
  atomic_fetch_add(&tally->fired, 1);
  OK(tickless_fired_forward(fired, MS, &overruns));
  OK(tickless_fired_forward(fired, MS, NULL));
}

static void linger(tickless_fired_t *fired, void *data) {
  struct tally *tally = data;
  (void)fired;
  atomic_fetch_add(&tally->fired, 1);
  while (!atomic_load(&tally->go_on)) sleep_ms(1);
}

static void both_kinds_fire(uint32_t kind) {
  tickless_timer_t timer = {{0}};
  struct tally tally = {0};
  uint64_t now;
  bool is = true;
  OK(tickless_timer_init(&timer, timers, kind, count, &tally));
  OK(tickless_timer_is_active(&timer, &is));
  CHECK(!is);
  OK(tickless_timer_start(&timer, 0));
  UNTIL(atomic_load(&tally.fired) == 1);
  OK(tickless_timers_now(timers, &now));
  OK(tickless_timer_start_at(&timer, now + 2 * (uint64_t)MS));
  UNTIL(atomic_load(&tally.fired) == 2);
  /* Push out from one hour to two, then move the deadline forward. */
  OK(tickless_timer_start(&timer, 3600 * SECOND));
  OK(tickless_timer_start(&timer, 7200 * SECOND));
  OK(tickless_timer_is_pending(&timer, &is));
  CHECK(is);
  OK(tickless_timer_start(&timer, MS));
  UNTIL(atomic_load(&tally.fired) == 3);
  /* The limits of the range. */
  OK(tickless_timer_start(&timer, INT64_MAX));
  OK(tickless_timer_start_at(&timer, TICKLESS_NEVER));
  OK(tickless_timer_is_active(&timer, &is));
  CHECK(is);
  OK(tickless_timer_start_at(&timer, 0));
  UNTIL(atomic_load(&tally.fired) == 4);
  OK(tickless_timer_destroy(&timer));
}

static void windows_and_reductions(void) {
  tickless_timer_t precise = {{0}}, coarse = {{0}};
  struct tally tally = {0};
  uint64_t now;
  OK(tickless_timer_init(&precise, timers, TICKLESS_PRECISE | TICKLESS_DEFERRED, count, &tally));
  OK(tickless_timer_init(&coarse, timers, TICKLESS_COARSE | TICKLESS_PIN(1), count, &tally));
  OK(tickless_timers_now(timers, &now));
  OK(tickless_timer_start_range(&precise, now, now + 3 * (uint64_t)MS));
  UNTIL(atomic_load(&tally.fired) == 1);
  OK(tickless_timer_start_slack(&precise, MS, 2 * MS));
  UNTIL(atomic_load(&tally.fired) == 2);
  OK(tickless_timer_start(&coarse, 3600 * SECOND));
  OK(tickless_timer_reduce(&coarse, 7200 * SECOND));
  OK(tickless_timer_reduce(&coarse, MS));
  UNTIL(atomic_load(&tally.fired) == 3);
  OK(tickless_timer_destroy(&precise));
  OK(tickless_timer_destroy(&coarse));
}

static void callbacks_request_restarts(void) {
  tickless_timer_t timer = {{0}};
  struct tally tally = {0};
  tickless_cancel_t found;
  atomic_store(&tally.restarts, 3);
  OK(tickless_timer_init(&timer, timers, TICKLESS_COARSE, restart, &tally));
  OK(tickless_timer_start(&timer, 0));
  UNTIL(atomic_load(&tally.fired) == 4);
  OK(tickless_timer_cancel_sync(&timer, NULL));
  CHECK(atomic_load(&tally.fired) == 4);
  OK(tickless_timer_destroy(&timer));

  /* A timer that forwards itself keeps its phase, and one waiting cancel stops it. */
  OK(tickless_timer_init(&timer, timers, TICKLESS_PRECISE, forward, &tally));
  OK(tickless_timer_start_at(&timer, 5 * (uint64_t)MS));
  UNTIL(atomic_load(&tally.fired) > 10);
  OK(tickless_timer_cancel_sync(&timer, &found));
  CHECK(found != TICKLESS_CANCEL_IDLE);
  int fired = atomic_load(&tally.fired);
  sleep_ms(5);
  CHECK(fired == atomic_load(&tally.fired));
  OK(tickless_timer_destroy(&timer));
}

typedef tickless_status_t cancel_t(const tickless_timer_t *, tickless_cancel_t *);

static cancel_t *const cancels[] = {
    tickless_timer_try_cancel, tickless_timer_cancel, tickless_timer_cancel_sync,
    tickless_timer_cancel_single_shot, tickless_timer_shutdown_sync};

static void every_kind_of_cancel(uint32_t kind) {
  for (size_t i = 0; i < sizeof cancels / sizeof *cancels; i++) {
    tickless_timer_t timer = {{0}};
    struct tally tally = {0};
    tickless_cancel_t found = TICKLESS_CANCEL_RUNNING;
    OK(tickless_timer_init(&timer, timers, kind, count, &tally));
    OK(cancels[i](&timer, &found));
    CHECK(found == TICKLESS_CANCEL_IDLE);
    if (cancels[i] == tickless_timer_shutdown_sync) {
      IS(TICKLESS_SHUT, tickless_timer_start(&timer, MS));
      IS(TICKLESS_SHUT, tickless_timer_start_at(&timer, 0));
      OK(tickless_timer_destroy(&timer));
      OK(tickless_timer_init(&timer, timers, kind, count, &tally));
    }
    OK(tickless_timer_start(&timer, 3600 * SECOND));
    OK(cancels[i](&timer, &found));
    CHECK(found == TICKLESS_CANCEL_PENDING && atomic_load(&tally.fired) == 0);
    OK(tickless_timer_destroy(&timer));
  }
}

static void cancels_of_running_timers(void) {
  tickless_timer_t timer = {{0}};
  struct tally tally = {0};
  tickless_cancel_t found;
  bool is;
  OK(tickless_timer_init(&timer, timers, TICKLESS_PRECISE, linger, &tally));
  OK(tickless_timer_start(&timer, 0));
  UNTIL(atomic_load(&tally.fired) == 1);
  OK(tickless_timer_try_cancel(&timer, &found));
  CHECK(found == TICKLESS_CANCEL_RUNNING);
  OK(tickless_timer_cancel(&timer, &found));
  CHECK(found == TICKLESS_CANCEL_RUNNING);
  OK(tickless_timer_is_active(&timer, &is));
  CHECK(is);
  OK(tickless_timer_is_pending(&timer, &is));
  CHECK(!is);
  atomic_store(&tally.go_on, 1);
  OK(tickless_timer_cancel_sync(&timer, &found));
  OK(tickless_timer_is_active(&timer, &is));
  CHECK(!is);
  OK(tickless_timer_destroy(&timer));
}

static void statistics(void) {
  tickless_stats_t all = {.size = sizeof all}, one = {.size = sizeof one};
  tickless_timer_t timer = {{0}};
  struct tally tally = {0};
  OK(tickless_timer_init(&timer, timers, TICKLESS_COARSE | TICKLESS_DEFERRABLE, count, &tally));
  OK(tickless_timer_start(&timer, 3600 * SECOND));
  OK(tickless_timers_stats(timers, TICKLESS_ALL_BASES, &all));
  CHECK(all.bases == 2 && all.pending_coarse == 1 && all.pending_precise == 0 && all.fired > 10);
  CHECK(all.armed >= all.fired && all.cancelled >= 5);
  OK(tickless_timers_stats(timers, 1, &one));
  CHECK(one.bases == 1 && one.fired >= 1 && one.fired <= all.fired);
  /* A program that was compiled with fewer fields in the struct. */
  tickless_stats_t old = {.size = 2 * sizeof(uint64_t), .armed = 77};
  OK(tickless_timers_stats(timers, TICKLESS_ALL_BASES, &old));
  CHECK(old.bases == 2 && old.armed == 77);
  OK(tickless_timer_destroy(&timer));
}

static void options(void) {
  for (uint32_t choice = 0; choice < 2; choice++) {
    tickless_options_t options = {.size = sizeof options, .bases = 1, .tick_ns = 100000};
    options.patience_ns = (uint64_t)SECOND;
    options.flags =
        choice == 0 ? 0 : TICKLESS_SYSTEM_CLOCK | TICKLESS_PIN_DRIVERS | TICKLESS_EXPIRY_THREADS;
    OK(tickless_timers_start(&options, &timers));
    both_kinds_fire(TICKLESS_COARSE);
    both_kinds_fire(TICKLESS_PRECISE | TICKLESS_DEFERRED);
    OK(tickless_timers_stop(timers));
  }
  OK(tickless_timers_start(NULL, &timers));
  OK(tickless_timers_stop(timers));
  OK(tickless_timers_stop(NULL));
}

int main(void) {
  OK(TICKLESS_ABI_CHECK());
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", TICKLESS_VERSION_MAJOR, TICKLESS_VERSION_MINOR,
           TICKLESS_VERSION_PATCH);
  CHECK(strcmp(version, tickless_version()) == 0);
  tickless_options_t two = {.size = sizeof two, .bases = 2};
  OK(tickless_timers_start(&two, &timers));
  both_kinds_fire(TICKLESS_COARSE);
  both_kinds_fire(TICKLESS_PRECISE);
  windows_and_reductions();
  callbacks_request_restarts();
  every_kind_of_cancel(TICKLESS_COARSE);
  every_kind_of_cancel(TICKLESS_PRECISE);
  cancels_of_running_timers();
  statistics();
  OK(tickless_timers_stop(timers));
  options();
  return 0;
}
