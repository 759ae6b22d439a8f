/* Periodic timers: they do not drift, count missed expiries, keep their phase, and end. */
#include "check.h"

#include <stdatomic.h>

static tickless_timers_t *timers;

struct beat {
  tickless_periodic_t timer;
  atomic_int fired;
  atomic_int is_freed;
  atomic_ullong missed;
  atomic_ullong last;
  uint64_t period;
  int slow_ms;
  int stop_at;
};

static void beat(tickless_fired_t *fired, void *data) {
  struct beat *beat = data;
  uint64_t deadline, overruns;
  OK(tickless_fired_info(fired, &deadline, NULL, NULL, &overruns));
  uint64_t last = atomic_exchange(&beat->last, deadline);
  CHECK(last == 0 || (deadline > last && (deadline - last) % beat->period == 0));
  atomic_fetch_add(&beat->missed, overruns);
  int count = atomic_fetch_add(&beat->fired, 1) + 1;
  if (count == beat->stop_at) OK(tickless_fired_stop(fired));
  if (beat->slow_ms) sleep_ms(beat->slow_ms);
}

static void free_itself(tickless_fired_t *fired, void *data) {
  struct beat *beat = data;
  if (atomic_fetch_add(&beat->fired, 1) < 2) return;
  OK(tickless_periodic_destroy(&beat->timer));
  memset(&beat->timer, 0x5a, sizeof beat->timer);
  /* Requests are ignored after the timer has been destroyed. */
  OK(tickless_fired_restart(fired, 0));
  atomic_store(&beat->is_freed, 1);
}

static struct beat *new_beat(const tickless_periodic_options_t *options, tickless_callback_t call) {
  struct beat *beat = calloc(1, sizeof *beat);
  CHECK(beat);
  beat->period = (uint64_t)MS;
  OK(tickless_periodic_init(&beat->timer, timers, options, call, beat));
  return beat;
}

static void end(struct beat *beat) {
  OK(tickless_periodic_destroy(&beat->timer));
  free(beat);
}

static void runs_until_cancelled(void) {
  struct beat *heart = new_beat(NULL, beat);
  tickless_cancel_t found;
  uint64_t place;
  bool is;
  OK(tickless_periodic_start(&heart->timer, MS));
  UNTIL(atomic_load(&heart->fired) > 5);
  OK(tickless_periodic_is_active(&heart->timer, &is));
  OK(tickless_periodic_phase_offset(&heart->timer, &place));
  CHECK(is && place == TICKLESS_NEVER);
  OK(tickless_periodic_cancel_sync(&heart->timer, &found));
  CHECK(found != TICKLESS_CANCEL_IDLE);
  int fired = atomic_load(&heart->fired);
  sleep_ms(5);
  CHECK(fired == atomic_load(&heart->fired));
  OK(tickless_periodic_cancel(&heart->timer, &found));
  CHECK(found == TICKLESS_CANCEL_IDLE);
  OK(tickless_periodic_is_active(&heart->timer, &is));
  CHECK(!is);
  end(heart);
}

static void overruns_are_counted(uint32_t missed) {
  tickless_periodic_options_t options = {.size = sizeof options, .missed = missed};
  struct beat *slow = new_beat(&options, beat);
  slow->slow_ms = 3;
  slow->stop_at = 5;
  if (missed == TICKLESS_DELAY) slow->period = 1;
  OK(tickless_periodic_start(&slow->timer, MS));
  UNTIL(atomic_load(&slow->fired) == 5);
  CHECK(missed == TICKLESS_DELAY || atomic_load(&slow->missed) > 0);
  end(slow);
}

static void phases(void) {
  tickless_periodic_options_t options = {.size = sizeof options, .slack_ns = 1000};
  struct beat *beats[4];
  uint64_t place[4];
  const int64_t period = 20 * MS;
  for (uint32_t i = 0; i < 4; i++) {
    options.phase = i + 1;
    options.phase_value = i < 2 ? 0 : 7 * (uint64_t)MS;
    beats[i] = new_beat(&options, beat);
    beats[i]->period = (uint64_t)period;
    OK(tickless_periodic_start(&beats[i]->timer, period));
    OK(tickless_periodic_phase_offset(&beats[i]->timer, &place[i]));
    CHECK(place[i] < (uint64_t)period);
  }
  CHECK(place[0] == 0 && place[3] == 7 * (uint64_t)MS && place[1] != 0);
  IS(TICKLESS_OUT_OF_RANGE, tickless_periodic_start(&beats[3]->timer, 7 * MS));
  UNTIL(atomic_load(&beats[0]->fired) > 1);
  CHECK(atomic_load(&beats[0]->last) % (uint64_t)period == 0);
  OK(tickless_periodic_start_at(&beats[0]->timer, TICKLESS_NEVER, period));
  for (int i = 0; i < 4; i++) end(beats[i]);
}

static void a_callback_frees_its_timer(void) {
  struct beat *mine = new_beat(NULL, free_itself);
  OK(tickless_periodic_start_at(&mine->timer, 0, MS));
  UNTIL(atomic_load(&mine->is_freed));
  sleep_ms(5);
  CHECK(atomic_load(&mine->fired) == 3);
  free(mine);
}

int main(void) {
  tickless_options_t two = {.size = sizeof two, .bases = 2};
  OK(tickless_timers_start(&two, &timers));
  runs_until_cancelled();
  overruns_are_counted(TICKLESS_SKIP);
  overruns_are_counted(TICKLESS_BURST);
  overruns_are_counted(TICKLESS_DELAY);
  phases();
  for (int round = 0; round < 20; round++) a_callback_frees_its_timer();
  /* All timers are destroyed, whether their callback has returned or not. */
  OK(tickless_timers_stop(timers));
  return 0;
}
