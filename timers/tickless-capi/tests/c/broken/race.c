/* A race: the callback and the main thread use a counter without a lock. ThreadSanitizer must report
 * it. */
#include "../check.h"

static long counter;

static void count(tickless_fired_t *fired, void *data) {
  (void)data;
  counter++;
  OK(tickless_fired_restart(fired, MS / 10));
}

int main(void) {
  tickless_timers_t *timers;
  tickless_timer_t timer = {{0}};
  OK(tickless_timers_start(NULL, &timers));
  OK(tickless_timer_init(&timer, timers, TICKLESS_PRECISE, count, NULL));
  OK(tickless_timer_start(&timer, 0));
  for (int i = 0; i < 50; i++) {
    sleep_ms(1);
    counter++;
  }
  OK(tickless_timer_destroy(&timer));
  OK(tickless_timers_stop(timers));
  return 0;
}
