/* Two ways to free memory that a callback uses: after cancel_sync in another thread, or in the
 * callback itself. */
#define _POSIX_C_SOURCE 200809L
#include <tickless.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(tickless_status_t status) {
  if (status == TICKLESS_OK) return;
  fprintf(stderr, "%s\n", tickless_error_text());
  exit(1);
}

struct request {
  tickless_timer_t timeout;
  char *buffer;
};

static atomic_int expired;

static struct request *new_request(tickless_timers_t *timers, tickless_callback_t callback) {
  struct request *request = calloc(1, sizeof *request); /* zeroed, as the timer requires */
  char *buffer = calloc(1, 64);
  if (!request || !buffer) exit(1);
  request->buffer = buffer;
  check(tickless_timer_init(&request->timeout, timers, TICKLESS_PRECISE, callback, request));
  return request;
}

static void mark(tickless_fired_t *fired, void *data) {
  struct request *request = data;
  (void)fired;
  snprintf(request->buffer, 64, "timed out"); /* must still be allocated */
  atomic_fetch_add(&expired, 1);
}

static void free_itself(tickless_fired_t *fired, void *data) {
  struct request *request = data;
  (void)fired;
  check(tickless_timer_destroy(&request->timeout)); /* in the timer's own callback: does not wait */
  free(request->buffer);
  free(request);
  atomic_fetch_add(&expired, 1);
}

int main(void) {
  check(TICKLESS_ABI_CHECK());
  tickless_timers_t *timers;
  check(tickless_timers_start(NULL, &timers));

  int finished = 0;
  for (int i = 0; i < 100; i++) {
    struct request *request = new_request(timers, mark);
    check(tickless_timer_start(&request->timeout, i % 10 * 1000));
    for (int spin = 0; spin < 100; spin++) {
      bool is_active;
      check(tickless_timer_is_active(&request->timeout, &is_active));
    }
    tickless_cancel_t found;
    check(tickless_timer_cancel_sync(&request->timeout, &found));
    finished += found == TICKLESS_CANCEL_PENDING;
    free(request->buffer); /* the callback has returned, or will never run */
    check(tickless_timer_destroy(&request->timeout));
    free(request);
  }
  int timed_out = atomic_load(&expired);
  printf("%d finished in time, %d timed out\n", finished, timed_out);
  if (finished + timed_out != 100) return 1;

  for (int i = 0; i < 10; i++) {
    struct request *request = new_request(timers, free_itself);
    check(tickless_timer_start(&request->timeout, i * 1000));
  }
  while (atomic_load(&expired) < timed_out + 10) {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  }
  check(tickless_timers_stop(timers)); /* waits for the last of the other callbacks */
  return 0;
}
