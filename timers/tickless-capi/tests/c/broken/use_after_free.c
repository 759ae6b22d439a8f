/* Frees memory that a callback uses, without cancelling the timer first. */
#define _POSIX_C_SOURCE 200809L
#include "tickless.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static atomic_int is_over;

static void use(tickless_fired_t *fired, void *data) {
  (void)fired;
  *(volatile int *)data += 1;
  atomic_store(&is_over, 1);
}

int main(void) {
  tickless_timers_t *timers;
  tickless_timer_t timer = {{0}};
  int *used = calloc(1, sizeof *used);
  if (tickless_timers_start(0, &timers) != TICKLESS_OK) return 0;
  if (tickless_timer_init(&timer, timers, TICKLESS_PRECISE, use, used) != TICKLESS_OK) return 0;
  if (tickless_timer_start(&timer, 300000000) != TICKLESS_OK) return 0;
  free(used);
  while (!atomic_load(&is_over)) nanosleep(&(struct timespec){0, 1000000}, NULL);
  tickless_timer_destroy(&timer);
  tickless_timers_stop(timers);
  return 0;
}
