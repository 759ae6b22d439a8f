/* Threads: cancels that race expiry, callbacks that free their timers, and a thread for signals. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static tickless_timers_t *timers;

/* Memory that a callback uses and a canceller frees: an address sanitizer reports a callback that
 * runs too late. */
struct work {
  tickless_timer_t timer;
  int *owned;
  atomic_int fired;
};

static void spin(uint64_t ns) {
  uint64_t begun, now;
  OK(tickless_timers_now(timers, &begun));
  do {
    OK(tickless_timers_now(timers, &now));
  } while (now - begun < ns);
}

/* Runs for 50 us, so that many cancels find it running and wait. */
static void use(tickless_fired_t *fired, void *data) {
  struct work *work = data;
  (void)fired;
  spin(50000);
  *work->owned += 1;
  atomic_fetch_add(&work->fired, 1);
}

static void use_and_restart(tickless_fired_t *fired, void *data) {
  use(fired, data);
  OK(tickless_fired_restart(fired, 0));
}

static void *race_expiry(void *which) {
  const uint32_t kind = *(uint32_t *)which;
  unsigned fired = 0, cancelled = 0;
  for (unsigned round = 0; round < 300; round++) {
    struct work *work = calloc(1, sizeof *work);
    tickless_cancel_t found;
    CHECK(work);
    work->owned = calloc(1, sizeof *work->owned);
    CHECK(work->owned);
    tickless_callback_t callback = round % 3 ? use : use_and_restart;
    OK(tickless_timer_init(&work->timer, timers, kind, callback, work));
    /* Most cancels race the expiry; some timers certainly fire, some certainly do not. */
    OK(tickless_timer_start(&work->timer, round % 10 == 7 ? SECOND * 3600 : round % 7 * 10000));
    if (round % 10 == 8) UNTIL(atomic_load(&work->fired));
    spin(round % 50 * 4000);
    if (round % 2) {
      OK(tickless_timer_cancel_sync(&work->timer, &found));
      /* The callback has returned: the memory that it uses can be freed before the timer is
       * destroyed. */
      int uses = *work->owned;
      CHECK(uses == atomic_load(&work->fired));
      CHECK(callback != use || uses == (found != TICKLESS_CANCEL_PENDING));
      cancelled += found == TICKLESS_CANCEL_PENDING;
      free(work->owned);
      OK(tickless_timer_destroy(&work->timer));
    } else {
      OK(tickless_timer_destroy(&work->timer));
      free(work->owned);
    }
    fired += (unsigned)atomic_load(&work->fired);
    free(work);
  }
  CHECK(fired >= 30 && cancelled >= 30);
  return NULL;
}

/* A timer that its own callback frees. */
struct self {
  tickless_timer_t timer;
  int rounds;
};

static atomic_int freed;

static void free_self(tickless_fired_t *fired, void *data) {
  struct self *self = data;
  if (self->rounds-- > 0) {
    OK(tickless_fired_restart(fired, 1000));
    return;
  }
  /* Requests before and after the destruction are ignored. */
  OK(tickless_fired_restart(fired, 0));
  OK(tickless_timer_destroy(&self->timer));
  memset(self, 0xa5, sizeof *self);
  free(self);
  OK(tickless_fired_restart(fired, 0));
  OK(tickless_fired_info(fired, NULL, NULL, NULL, NULL));
  atomic_fetch_add(&freed, 1);
}

static void callbacks_free_their_timers(void) {
  enum { COUNT = 500 };
  for (int i = 0; i < COUNT; i++) {
    struct self *self = calloc(1, sizeof *self);
    CHECK(self);
    self->rounds = i % 4;
    uint32_t kind = i % 2 ? TICKLESS_COARSE : TICKLESS_PRECISE | TICKLESS_DEFERRED;
    OK(tickless_timer_init(&self->timer, timers, kind, free_self, self));
    OK(tickless_timer_start(&self->timer, i % 5 * 100000));
  }
  UNTIL(atomic_load(&freed) == COUNT);
}

/* A timer that its callback destroys and initialises again, in the same memory. */
struct reused {
  tickless_timer_t timer;
  atomic_int lives;
};

static void reinitialise(tickless_fired_t *fired, void *data) {
  struct reused *reused = data;
  (void)fired;
  int lives = atomic_fetch_add(&reused->lives, 1) + 1;
  OK(tickless_timer_destroy(&reused->timer));
  if (lives == 100) return;
  uint32_t kind = lives % 2 ? TICKLESS_COARSE : TICKLESS_PRECISE;
  OK(tickless_timer_init(&reused->timer, timers, kind, reinitialise, reused));
  OK(tickless_timer_start(&reused->timer, 0));
}

static void callbacks_reinitialise_their_timers(void) {
  static struct reused reused;
  OK(tickless_timer_init(&reused.timer, timers, TICKLESS_PRECISE, reinitialise, &reused));
  OK(tickless_timer_start(&reused.timer, 0));
  UNTIL(atomic_load(&reused.lives) == 100);
}

/* A thread receives the signals and cancels timers, which a signal handler must not do. */
static atomic_int never_fired;

static void never(tickless_fired_t *fired, void *data) {
  (void)fired;
  (void)data;
  atomic_store(&never_fired, 1);
}

static void *on_signal(void *timer) {
  sigset_t set;
  int signal;
  tickless_cancel_t found;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(sigwait(&set, &signal) == 0 && signal == SIGUSR1);
  OK(tickless_timer_cancel_sync(timer, &found));
  CHECK(found == TICKLESS_CANCEL_PENDING);
  return NULL;
}

static void cancelled_by_a_signal(void) {
  tickless_timer_t timer = {{0}};
  pthread_t thread;
  OK(tickless_timer_init(&timer, timers, TICKLESS_COARSE, never, NULL));
  OK(tickless_timer_start(&timer, 3600 * SECOND));
  CHECK(pthread_create(&thread, NULL, on_signal, &timer) == 0);
  CHECK(pthread_kill(thread, SIGUSR1) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(tickless_timer_destroy(&timer));
  CHECK(!atomic_load(&never_fired));
}

/* Each thread has its own last error. */
static void *other_error(void *text) {
  CHECK(strlen(tickless_error_text()) == 0);
  IS(TICKLESS_NULL_POINTER, tickless_timer_start(NULL, 0));
  CHECK(strcmp(tickless_error_text(), text) != 0);
  return NULL;
}

static void errors_are_per_thread(void) {
  pthread_t thread;
  char before[256];
  tickless_options_t bad = {.size = 1};
  tickless_timers_t *none;
  IS(TICKLESS_UNSUPPORTED, tickless_timers_start(&bad, &none));
  snprintf(before, sizeof before, "%s", tickless_error_text());
  CHECK(pthread_create(&thread, NULL, other_error, before) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(strcmp(before, tickless_error_text()) == 0);
}

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  /* Block the signals before timers start: driver threads inherit the mask. */
  CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  tickless_options_t options = {.size = sizeof options, .bases = 2, .tick_ns = 10000};
  options.flags = TICKLESS_EXPIRY_THREADS;
  OK(tickless_timers_start(&options, &timers));
  errors_are_per_thread();
  uint32_t kinds[2] = {TICKLESS_COARSE, TICKLESS_PRECISE};
  pthread_t racers[2];
  for (int i = 0; i < 2; i++)
    CHECK(pthread_create(&racers[i], NULL, race_expiry, &kinds[i]) == 0);
  callbacks_free_their_timers();
  callbacks_reinitialise_their_timers();
  cancelled_by_a_signal();
  for (int i = 0; i < 2; i++) CHECK(pthread_join(racers[i], NULL) == 0);
  OK(tickless_timers_stop(timers));
  return 0;
}
