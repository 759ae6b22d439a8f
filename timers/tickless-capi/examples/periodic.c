/* A sampler that does not drift, and reports how many samples it missed when it was delayed. */
#define _POSIX_C_SOURCE 200809L
#include <tickless.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MS 1000000

static void check(tickless_status_t status) {
  if (status == TICKLESS_OK) return;
  fprintf(stderr, "%s\n", tickless_error_text());
  exit(1);
}

struct sampler {
  tickless_periodic_t timer;
  uint64_t first_ns;
  uint64_t missed;
  int samples;
  atomic_bool is_done;
};

static void sleep_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * MS}, NULL); }

static void sample(tickless_fired_t *fired, void *data) {
  struct sampler *sampler = data;
  uint64_t deadline, missed;
  check(tickless_fired_info(fired, &deadline, NULL, NULL, &missed));
  if (sampler->samples == 0) sampler->first_ns = deadline;
  sampler->missed += missed;
  sampler->samples++;
  printf("sample %2d at %3lu ms, %lu missed\n", sampler->samples,
         (unsigned long)((deadline - sampler->first_ns) / MS), (unsigned long)missed);
  if (sampler->samples == 4) sleep_ms(35); /* delayed for three and a half periods */
  if (sampler->samples == 8) {
    check(tickless_fired_stop(fired));
    atomic_store(&sampler->is_done, true);
  }
}

int main(void) {
  check(TICKLESS_ABI_CHECK());
  tickless_timers_t *timers;
  check(tickless_timers_start(NULL, &timers));

  static struct sampler sampler;
  tickless_periodic_options_t options = {.size = sizeof options, .missed = TICKLESS_SKIP};
  check(tickless_periodic_init(&sampler.timer, timers, &options, sample, &sampler));
  check(tickless_periodic_start(&sampler.timer, 10 * MS));
  while (!atomic_load(&sampler.is_done)) sleep_ms(5);
  check(tickless_periodic_destroy(&sampler.timer)); /* after this the callback has returned */

  printf("%d samples, %lu missed\n", sampler.samples, (unsigned long)sampler.missed);
  check(tickless_timers_stop(timers));
  return sampler.missed >= 2 ? 0 : 1;
}
