// The operations that programs do most, as one writes them in C from the header and from
// docs/book/src/c.md; with LIBEV, as one writes them from libev's manual. ci/counts.sh counts the
// instructions of each function below that is COUNTED. With the name of one as the argument, the
// program runs that one only.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef LIBEV
#include <ev.h>
#else
#include <tickless.h>
#endif

#define OPERATIONS 1000
#define SECOND 1000000000LL
#define COUNTED __attribute__((noinline)) static void

// 600 to 1,200 s, at random.
static int64_t some_time(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return 600 * SECOND + (int64_t)(state % (uint64_t)(600 * SECOND));
}

// The loop around the other operations.
volatile int64_t after;
COUNTED nothing(void) {
  for (int i = 0; i < OPERATIONS; i++) after = some_time();
}

#ifdef LIBEV

static struct ev_loop *loop;
static ev_timer spare, pending[OPERATIONS];

static void on_timer(struct ev_loop *of, ev_timer *timer, int events) {
  (void)of, (void)timer, (void)events;
}

static void prepare(void) {
  loop = ev_default_loop(0);
  ev_timer_init(&spare, on_timer, 0., 0.);
  for (int i = 0; i < OPERATIONS; i++) {
    ev_timer_init(&pending[i], on_timer, some_time() / 1e9, 0.);
    ev_timer_start(loop, &pending[i]);
  }
}

COUNTED libev_pair(void) {
  for (int i = 0; i < OPERATIONS; i++) {
    ev_timer_set(&spare, some_time() / 1e9, 0.);
    ev_timer_start(loop, &spare);
    ev_timer_stop(loop, &spare);
  }
}

// What its manual says for idle timeouts.
COUNTED libev_push_out(void) {
  for (int i = 0; i < OPERATIONS; i++) {
    pending[i].repeat = (600 * SECOND + some_time()) / 1e9;
    ev_timer_again(loop, &pending[i]);
  }
}

static const struct {
  const char *name;
  void (*run)(void);
} counted[] = {{"nothing", nothing}, {"libev_pair", libev_pair}, {"libev_push_out", libev_push_out}};

#else

static tickless_timers_t *timers;
static tickless_timer_t spare, pending[OPERATIONS];

// The timers of one thread: one set does not read the clock.
struct loop {
  tickless_local_t *timers;
  tickless_key_t spare, pending[OPERATIONS];
} manual, reading;

static void check(tickless_status_t status) {
  if (status == TICKLESS_OK) return;
  fprintf(stderr, "%s\n", tickless_error_text());
  exit(1);
}

static void on_timer(tickless_fired_t *fired, void *data) { (void)fired, (void)data; }

static void prepare_loop(struct loop *loop) {
  check(tickless_local_insert(loop->timers, TICKLESS_COARSE, NULL, &loop->spare));
  for (int i = 0; i < OPERATIONS; i++) {
    check(tickless_local_insert(loop->timers, TICKLESS_COARSE, NULL, &loop->pending[i]));
    check(tickless_local_start(loop->timers, loop->pending[i], some_time()));
  }
}

static void prepare(void) {
  // One base: under valgrind there are no restartable sequences from which to read the CPU.
  tickless_options_t options = {.size = sizeof options, .bases = 1};
  check(tickless_timers_start(&options, &timers));
  check(tickless_timer_init(&spare, timers, TICKLESS_COARSE, on_timer, NULL));
  for (int i = 0; i < OPERATIONS; i++) {
    check(tickless_timer_init(&pending[i], timers, TICKLESS_COARSE, on_timer, NULL));
    check(tickless_timer_start(&pending[i], some_time()));
  }
  // Until this thread owns the bias of the base's lock, as in a steady state.
  for (int i = 0; i < 300 * OPERATIONS; i++) {
    check(tickless_timer_start(&spare, some_time()));
    check(tickless_timer_cancel(&spare, NULL));
  }
  check(tickless_local_create_manual(SECOND, 0, 0, &manual.timers));
  prepare_loop(&manual);
  check(tickless_local_create(0, 0, &reading.timers));
  prepare_loop(&reading);
}

static void pair(struct loop *loop) {
  for (int i = 0; i < OPERATIONS; i++) {
    check(tickless_local_start(loop->timers, loop->spare, some_time()));
    check(tickless_local_cancel(loop->timers, loop->spare, NULL));
  }
}

static void push_out(struct loop *loop) {
  for (int i = 0; i < OPERATIONS; i++)
    check(tickless_local_start(loop->timers, loop->pending[i], 600 * SECOND + some_time()));
}

COUNTED local_pair(void) { pair(&manual); }

COUNTED local_push_out(void) { push_out(&manual); }

// These two read CLOCK_MONOTONIC each time. Valgrind does not count the reading itself.
COUNTED local_pair_read(void) { pair(&reading); }

COUNTED local_push_out_read(void) { push_out(&reading); }

COUNTED shared_pair(void) {
  for (int i = 0; i < OPERATIONS; i++) {
    check(tickless_timer_start(&spare, some_time()));
    check(tickless_timer_cancel(&spare, NULL));
  }
}

COUNTED shared_pair_from(void) {
  uint64_t now;
  check(tickless_timers_now(timers, &now));
  for (int i = 0; i < OPERATIONS; i++) {
    check(tickless_timer_start_from(&spare, now, some_time()));
    check(tickless_timer_cancel(&spare, NULL));
  }
}

COUNTED shared_push_out(void) {
  for (int i = 0; i < OPERATIONS; i++)
    check(tickless_timer_start(&pending[i], 600 * SECOND + some_time()));
}

COUNTED shared_push_out_from(void) {
  uint64_t now;
  check(tickless_timers_now(timers, &now));
  for (int i = 0; i < OPERATIONS; i++)
    check(tickless_timer_start_from(&pending[i], now, 600 * SECOND + some_time()));
}

static const struct {
  const char *name;
  void (*run)(void);
} counted[] = {{"nothing", nothing},
               {"local_pair", local_pair},
               {"local_push_out", local_push_out},
               {"local_pair_read", local_pair_read},
               {"local_push_out_read", local_push_out_read},
               {"shared_pair", shared_pair},
               {"shared_pair_from", shared_pair_from},
               {"shared_push_out", shared_push_out},
               {"shared_push_out_from", shared_push_out_from}};

#endif

int main(int argc, char **argv) {
  prepare();
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
    if (argc < 2 || strcmp(argv[1], counted[i].name) == 0) counted[i].run();
  return 0;
}
