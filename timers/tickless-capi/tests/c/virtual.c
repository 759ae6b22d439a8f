/* Timers on a virtual clock, on its wall-clock time, and labels. */
#include "check.h"

#define HOUR (3600 * SECOND)

struct seen {
  tickless_timers_t *timers;
  uint64_t at[8];
  int count;
};

static void record(tickless_fired_t *fired, void *data) {
  struct seen *seen = data;
  CHECK(seen->count < 8);
  OK(tickless_timers_now(seen->timers, &seen->at[seen->count++]));
  if (seen->count < 3) OK(tickless_fired_restart(fired, HOUR));
}

static tickless_timers_t *started(struct seen *seen) {
  OK(tickless_timers_start_virtual(NULL, SECOND, &seen->timers));
  return seen->timers;
}

static void virtual_hours_pass_at_once(void) {
  struct seen seen = {0};
  tickless_timers_t *timers = started(&seen);
  tickless_timer_t timer = {{0}};
  uint64_t now;
  bool has_fired;
  OK(tickless_timer_init(&timer, timers, TICKLESS_PRECISE, record, &seen));
  OK(tickless_virtual_next_event(timers, &now));
  CHECK(now == TICKLESS_NEVER);
  OK(tickless_timer_start(&timer, HOUR));
  OK(tickless_virtual_advance(timers, HOUR - 1));
  CHECK(seen.count == 0);
  OK(tickless_virtual_advance(timers, 1));
  CHECK(seen.count == 1 && seen.at[0] == SECOND + HOUR);
  OK(tickless_virtual_advance_to_next(timers, &has_fired));
  CHECK(has_fired && seen.count == 2 && seen.at[1] == SECOND + 2 * HOUR);
  OK(tickless_virtual_next_event(timers, &now));
  CHECK(now == SECOND + 3 * HOUR);
  OK(tickless_virtual_advance_to(timers, SECOND + 9 * HOUR));
  CHECK(seen.count == 3);
  OK(tickless_virtual_advance_to_next(timers, &has_fired));
  CHECK(!has_fired);
  IS(TICKLESS_BUSY, tickless_timers_stop(timers));
  OK(tickless_timer_destroy(&timer));
  OK(tickless_timers_stop(timers));
}

static void labels_are_listed(void) {
  struct seen seen = {0};
  tickless_timers_t *timers = started(&seen);
  tickless_timer_t timer = {{0}};
  tickless_periodic_t beat = {{0}};
  char text[4096], small[8], name[] = "http idle";
  size_t needed = 0, again = 0;
  OK(tickless_timer_init(&timer, timers, TICKLESS_COARSE, record, &seen));
  OK(tickless_periodic_init(&beat, timers, NULL, record, &seen));
  OK(tickless_timer_label(&timer, name));
  memset(name, 'x', sizeof name - 1); /* the library keeps a copy */
  OK(tickless_periodic_label(&beat, "heart beat"));
  OK(tickless_timer_start(&timer, HOUR));
  OK(tickless_periodic_start(&beat, HOUR));
  OK(tickless_timers_list(timers, text, sizeof text, &needed));
  CHECK(strstr(text, "http idle") && strstr(text, "heart beat"));
  CHECK(needed == strlen(text) + 1);
  OK(tickless_timers_list(timers, NULL, 0, &again));
  CHECK(again == needed);
  OK(tickless_timers_list(timers, small, sizeof small, &again));
  CHECK(again == needed && strlen(small) == 7 && strncmp(small, text, 7) == 0);
  IS(TICKLESS_NULL_POINTER, tickless_timer_label(&timer, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_timer_label(NULL, "name"));
  IS(TICKLESS_NULL_POINTER, tickless_periodic_label(NULL, "name"));
  IS(TICKLESS_UNSUPPORTED, tickless_timer_label(&timer, "\xff"));
  IS(TICKLESS_NULL_POINTER, tickless_timers_list(timers, NULL, 1, NULL));
  OK(tickless_timer_destroy(&timer));
  OK(tickless_periodic_destroy(&beat));
  OK(tickless_timers_stop(timers));
}

struct clocked {
  tickless_clock_timer_t *timer;
  int count, again;
  uint64_t deadline, now;
};

static void ticks(tickless_clock_fired_t *fired, void *data) {
  struct clocked *clocked = data;
  uint64_t missed;
  OK(tickless_clock_fired_info(fired, &clocked->deadline, &clocked->now));
  CHECK(clocked->now >= clocked->deadline);
  clocked->count++;
  IS(TICKLESS_OUT_OF_RANGE, tickless_clock_fired_forward(fired, 0, NULL));
  IS(TICKLESS_OUT_OF_RANGE, tickless_clock_fired_restart(fired, -1));
  if (clocked->again == 1) OK(tickless_clock_fired_restart(fired, HOUR));
  if (clocked->again == 2) OK(tickless_clock_fired_restart_at(fired, clocked->now + HOUR));
  if (clocked->again == 3) {
    OK(tickless_clock_fired_forward(fired, HOUR, &missed));
    CHECK(missed == 0);
  }
  if (clocked->again == 9) OK(tickless_clock_timer_destroy(clocked->timer));
}

static void wall_clock_time_is_set(void) {
  struct seen seen = {0};
  struct clocked alarm = {0};
  tickless_timers_t *timers = started(&seen);
  tickless_cancel_t found;
  uint64_t now;
  bool is;
  OK(tickless_timers_now_on(timers, TICKLESS_CLOCK_REALTIME, &now));
  OK(tickless_clock_timer_create(timers, TICKLESS_CLOCK_REALTIME, ticks, &alarm, &alarm.timer));
  OK(tickless_clock_timer_start_range(alarm.timer, now + HOUR, now + HOUR));
  OK(tickless_clock_timer_is_pending(alarm.timer, &is));
  CHECK(is);
  OK(tickless_virtual_set_realtime(timers, now - HOUR)); /* two hours before the alarm */
  OK(tickless_virtual_advance(timers, HOUR));
  CHECK(alarm.count == 0);
  OK(tickless_virtual_set_realtime(timers, now + HOUR)); /* the alarm is due */
  CHECK(alarm.count == 1 && alarm.deadline == now + HOUR);
  for (alarm.again = 1; alarm.again <= 3; alarm.again++) {
    alarm.count = 0;
    OK(tickless_clock_timer_start(alarm.timer, HOUR));
    OK(tickless_virtual_advance(timers, HOUR));
    CHECK(alarm.count == 1);
    OK(tickless_virtual_advance(timers, HOUR));
    CHECK(alarm.count == 2);
  }
  OK(tickless_clock_timer_cancel(alarm.timer, &found));
  CHECK(found == TICKLESS_CANCEL_PENDING);
  OK(tickless_clock_timer_cancel_sync(alarm.timer, &found));
  CHECK(found == TICKLESS_CANCEL_IDLE);
  alarm.again = 9; /* the callback destroys its timer */
  OK(tickless_clock_timer_start(alarm.timer, HOUR));
  OK(tickless_virtual_advance(timers, HOUR));
  OK(tickless_timers_stop(timers));
}

static void suspends_count_on_boottime(void) {
  struct seen seen = {0};
  struct clocked boot = {0}, mono = {0};
  tickless_timers_t *timers = started(&seen);
  OK(tickless_clock_timer_create(timers, TICKLESS_CLOCK_BOOTTIME, ticks, &boot, &boot.timer));
  OK(tickless_clock_timer_create(timers, TICKLESS_CLOCK_MONOTONIC, ticks, &mono, &mono.timer));
  OK(tickless_clock_timer_start(boot.timer, HOUR));
  OK(tickless_clock_timer_start(mono.timer, HOUR));
  OK(tickless_virtual_suspend(timers, HOUR));
  CHECK(boot.count == 1 && mono.count == 0);
  OK(tickless_virtual_advance(timers, HOUR));
  CHECK(boot.count == 1 && mono.count == 1);
  IS(TICKLESS_BUSY, tickless_timers_stop(timers));
  OK(tickless_clock_timer_destroy(boot.timer));
  OK(tickless_clock_timer_destroy(mono.timer));
  OK(tickless_timers_stop(timers));
}

static void misuse(void) {
  tickless_timers_t *timers;
  tickless_clock_timer_t *timer;
  uint64_t now;
  bool is;
  IS(TICKLESS_NULL_POINTER, tickless_timers_start_virtual(NULL, 0, NULL));
  OK(tickless_timers_start(NULL, &timers));
  IS(TICKLESS_UNSUPPORTED, tickless_virtual_advance(timers, 1));
  IS(TICKLESS_UNSUPPORTED, tickless_virtual_advance_to(timers, 1));
  IS(TICKLESS_UNSUPPORTED, tickless_virtual_advance_to_next(timers, &is));
  IS(TICKLESS_UNSUPPORTED, tickless_virtual_next_event(timers, &now));
  IS(TICKLESS_UNSUPPORTED, tickless_virtual_set_realtime(timers, 1));
  IS(TICKLESS_UNSUPPORTED, tickless_virtual_suspend(timers, 1));
  IS(TICKLESS_NULL_POINTER, tickless_virtual_advance(NULL, 1));
  IS(TICKLESS_UNSUPPORTED, tickless_timers_now_on(timers, 3, &now));
  IS(TICKLESS_NULL_POINTER, tickless_timers_now_on(timers, 0, NULL));
  IS(TICKLESS_UNSUPPORTED, tickless_clock_timer_create(timers, 3, ticks, NULL, &timer));
  IS(TICKLESS_NULL_POINTER, tickless_clock_timer_create(timers, 0, NULL, NULL, &timer));
  IS(TICKLESS_NULL_POINTER, tickless_clock_timer_create(timers, 0, ticks, NULL, NULL));
  CHECK(!timer);
  OK(tickless_clock_timer_destroy(NULL));
  IS(TICKLESS_NULL_POINTER, tickless_clock_timer_start(NULL, 0));
  IS(TICKLESS_NULL_POINTER, tickless_clock_timer_cancel(NULL, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_clock_timer_is_pending(NULL, &is));
  IS(TICKLESS_NULL_POINTER, tickless_clock_fired_info(NULL, NULL, NULL));
  OK(tickless_clock_timer_create(timers, TICKLESS_CLOCK_REALTIME, ticks, NULL, &timer));
  IS(TICKLESS_OUT_OF_RANGE, tickless_clock_timer_start(timer, -1));
  IS(TICKLESS_OUT_OF_RANGE, tickless_clock_timer_start_range(timer, 2, 1));
  IS(TICKLESS_NULL_POINTER, tickless_clock_timer_is_pending(timer, NULL));
  OK(tickless_timers_now_on(timers, TICKLESS_CLOCK_BOOTTIME, &now));
  CHECK(now > 0);
  OK(tickless_clock_timer_destroy(timer));
  OK(tickless_timers_stop(timers));
}

int main(void) {
  virtual_hours_pass_at_once();
  labels_are_listed();
  wall_clock_time_is_set();
  suspends_count_on_boottime();
  misuse();
  return 0;
}
