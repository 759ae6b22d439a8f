/* A timeout that is armed, pushed out while data arrives, and fires when no more arrives. */
#define _POSIX_C_SOURCE 200809L
#include <tickless.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MS 1000000

static void check(tickless_status_t status) {
  if (status == TICKLESS_OK) return;
  fprintf(stderr, "%s\n", tickless_error_text());
  exit(1);
}

/* Runs on a thread of the library. */
static void timed_out(tickless_fired_t *fired, void *data) {
  uint64_t deadline, found;
  check(tickless_fired_info(fired, &deadline, &found, NULL, NULL));
  printf("%s went silent; noticed %.1f ms late\n", (const char *)data,
         (double)(found - deadline) / 1e6);
}

static void sleep_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * MS}, NULL); }

int main(void) {
  check(TICKLESS_ABI_CHECK());
  tickless_timers_t *timers;
  check(tickless_timers_start(NULL, &timers));

  static char name[] = "the sensor";
  tickless_timer_t silence = {{0}};
  check(tickless_timer_init(&silence, timers, TICKLESS_COARSE, timed_out, name));
  for (int news = 0; news < 5; news++) {
    check(tickless_timer_start(&silence, 100 * MS)); /* arms it, then pushes it out */
    sleep_ms(20);
  }
  bool is_pending = true;
  while (is_pending) {
    sleep_ms(10);
    check(tickless_timer_is_pending(&silence, &is_pending));
  }

  /* Waits until the callback has returned, if it is still printing. */
  check(tickless_timer_destroy(&silence));
  check(tickless_timers_stop(timers));
  return 0;
}
