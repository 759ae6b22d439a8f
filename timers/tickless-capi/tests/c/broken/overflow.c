/* Passes less memory than a timer needs. */
#include "tickless.h"

#include <stdlib.h>

static void nothing(tickless_fired_t *fired, void *data) {
  (void)fired;
  (void)data;
}

int main(void) {
  tickless_timers_t *timers;
  tickless_timer_t *timer = calloc(1, 40);
  if (!timer || tickless_timers_start(0, &timers) != TICKLESS_OK) return 0;
  if (tickless_timer_init(timer, timers, TICKLESS_PRECISE, nothing, 0) != TICKLESS_OK) return 0;
  tickless_timer_destroy(timer);
  tickless_timers_stop(timers);
  free(timer);
  return 0;
}
