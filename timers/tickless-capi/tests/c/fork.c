/* Timers after a fork: in the child they count as shut down and no call waits, not even for the
 * lock of the labels, which another thread of the parent takes all the time. The parent's timers
 * continue. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int beats;

static void beat(tickless_fired_t *fired, void *data) {
  (void)fired;
  (void)data;
  atomic_fetch_add(&beats, 1);
}

static atomic_bool done;

/* Labels a timer in a loop, with thousands of different labels. */
static void *label(void *timer) {
  for (unsigned round = 0; !atomic_load(&done); round++) {
    char text[32];
    snprintf(text, sizeof text, "label %u", round % 4096);
    OK(tickless_timer_label(timer, text));
  }
  return NULL;
}

static int64_t now_ms(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The status of a child in which stopping a set of its parent took 50 ms or more. */
enum { WAITED = 7 };

static void child(tickless_timers_t *timers, tickless_timers_t *in_virtual_time,
                  tickless_timer_t *timer, tickless_periodic_t *heart) {
  tickless_stats_t stats = {.size = sizeof stats};
  tickless_cancel_t found;
  tickless_timer_t own = {{0}};
  bool is;
  int before = atomic_load(&beats);
  IS(TICKLESS_SHUT, tickless_virtual_advance(in_virtual_time, MS));
  OK(tickless_timers_stop(in_virtual_time));
  OK(tickless_timer_label(timer, "in the child"));
  OK(tickless_timer_is_pending(timer, &is));
  CHECK(!is);
  IS(TICKLESS_SHUT, tickless_timer_start(timer, 0));
  IS(TICKLESS_SHUT, tickless_periodic_start(heart, MS));
  OK(tickless_timer_cancel_sync(timer, &found));
  CHECK(found == TICKLESS_CANCEL_IDLE);
  OK(tickless_periodic_cancel_sync(heart, &found));
  CHECK(found == TICKLESS_CANCEL_IDLE);
  OK(tickless_timers_stats(timers, TICKLESS_ALL_BASES, &stats));
  CHECK(stats.bases == 0);
  /* Timers of the parent do not keep their set busy here, and can be destroyed afterwards. */
  int64_t began = now_ms();
  OK(tickless_timers_stop(timers));
  bool waited = now_ms() - began >= 50;
  sleep_ms(5);
  CHECK(before == atomic_load(&beats));
  OK(tickless_periodic_destroy(heart));
  OK(tickless_timer_destroy(timer));
  /* The child starts timers of its own. */
  tickless_options_t one = {.size = sizeof one, .bases = 1};
  OK(tickless_timers_start(&one, &timers));
  OK(tickless_timer_init(&own, timers, TICKLESS_PRECISE, beat, NULL));
  OK(tickless_timer_start(&own, 0));
  UNTIL(atomic_load(&beats) == before + 1);
  OK(tickless_timer_destroy(&own));
  OK(tickless_timers_stop(timers));
  _exit(waited ? WAITED : 0);
}

int main(void) {
  tickless_timers_t *timers, *in_virtual_time;
  tickless_timer_t timer = {{0}};
  tickless_periodic_t heart = {{0}};
  tickless_options_t one = {.size = sizeof one, .bases = 1};
  tickless_cancel_t found;
  int status, slow = 0;
  pthread_t labelling;
  OK(tickless_timers_start(&one, &timers));
  OK(tickless_timers_start_virtual(&one, 0, &in_virtual_time));
  OK(tickless_timer_init(&timer, timers, TICKLESS_COARSE, beat, NULL));
  OK(tickless_timer_start(&timer, 3600 * SECOND));
  OK(tickless_periodic_init(&heart, timers, NULL, beat, NULL));
  OK(tickless_periodic_start(&heart, MS));
  CHECK(pthread_create(&labelling, NULL, label, &timer) == 0);
  for (int round = 0; round < 50; round++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) child(timers, in_virtual_time, &timer, &heart);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == WAITED);
    slow += WEXITSTATUS(status) == WAITED;
  }
  /* A busy machine can make any of them slow, but not most. */
  CHECK(slow < 25);
  atomic_store(&done, true);
  CHECK(pthread_join(labelling, NULL) == 0);
  int before = atomic_load(&beats);
  UNTIL(atomic_load(&beats) > before + 2);
  OK(tickless_timer_cancel(&timer, &found));
  CHECK(found == TICKLESS_CANCEL_PENDING);
  OK(tickless_periodic_destroy(&heart));
  OK(tickless_timer_destroy(&timer));
  OK(tickless_timers_stop(in_virtual_time));
  OK(tickless_timers_stop(timers));
  return 0;
}
