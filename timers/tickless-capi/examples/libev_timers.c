/* Tickless in libev's loop: an ev_io on one descriptor drives all timers.
 *
 * Three heartbeats with different periods, and an alarm on wall-clock time that ends the program.
 *
 * cc libev_timers.c $(pkg-config --cflags --libs tickless) -lev
 */
#include <tickless.h>

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>

#define MS 1000000LL

static tickless_loop_t *driver;
static struct ev_loop *loop;

static void check(tickless_status_t status) {
  if (status == TICKLESS_OK) return;
  fprintf(stderr, "%s\n", tickless_error_text());
  exit(1);
}

static void readable(struct ev_loop *of, ev_io *watcher, int events) {
  (void)of, (void)watcher, (void)events;
  check(tickless_loop_run(driver, NULL));
}

static void beat(tickless_fired_t *fired, void *data) {
  uint64_t missed;
  unsigned *beats = data;
  check(tickless_fired_info(fired, NULL, NULL, NULL, &missed));
  *beats += 1 + (unsigned)missed;
}

static void alarm_rings(tickless_clock_fired_t *fired, void *data) {
  (void)fired, (void)data;
  ev_break(loop, EVBREAK_ALL);
}

int main(void) {
  tickless_timers_t *timers;
  tickless_periodic_t hearts[3] = {{{0}}};
  tickless_clock_timer_t *alarm;
  unsigned beats[3] = {0};
  uint64_t wall;
  int descriptor;
  ev_io watcher;
  check(TICKLESS_ABI_CHECK());
  check(tickless_timers_start_in_loops(NULL, 1, &timers, &driver));
  check(tickless_loop_fd(driver, &descriptor));
  for (int i = 0; i < 3; i++) {
    check(tickless_periodic_init(&hearts[i], timers, NULL, beat, &beats[i]));
    check(tickless_periodic_start(&hearts[i], (10 << i) * MS));
  }
  check(tickless_timers_now_on(timers, TICKLESS_CLOCK_REALTIME, &wall));
  check(tickless_clock_timer_create(timers, TICKLESS_CLOCK_REALTIME, alarm_rings, NULL, &alarm));
  wall += (uint64_t)(205 * MS);
  check(tickless_clock_timer_start_range(alarm, wall, wall));

  loop = ev_loop_new(EVFLAG_AUTO);
  if (!loop) return 1;
  ev_io_init(&watcher, readable, descriptor, EV_READ);
  ev_io_start(loop, &watcher);
  ev_run(loop, 0);
  ev_io_stop(loop, &watcher);
  ev_loop_destroy(loop);

  printf("%u, %u and %u beats in 205 ms\n", beats[0], beats[1], beats[2]);
  /* Missed expiries are counted, so the sum is the number of periods; the alarm may be late. */
  int is_right = beats[0] >= 20 && beats[1] >= 10 && beats[2] >= 5;
  for (int i = 0; i < 3; i++) check(tickless_periodic_destroy(&hearts[i]));
  check(tickless_clock_timer_destroy(alarm));
  check(tickless_timers_stop(timers));
  check(tickless_loop_destroy(driver));
  return is_right ? 0 : 1;
}
