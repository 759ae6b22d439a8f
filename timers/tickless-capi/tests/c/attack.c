/* A random history of everything that threads share, with accounts: timers, clock timers, periodic
 * timers, limiters, keyed limiters and throttles, on sets with threads, in a loop and in virtual
 * time, beside each thread's local and fixed timers. Accounts are plain memory that callbacks write
 * and owners read after a waiting cancel, so that ThreadSanitizer checks what a cancel promises.
 * All threads move virtual time and run the loop, which each adopts first; some callbacks destroy
 * their own timer.
 * Usage: attack [MILLISECONDS [SEED [forks]]]; it prints the seed. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, KEYS = 8, QUOTA = 20, WITH_THREADS = 0, IN_LOOP, VIRTUAL, SETS };
/* Timers of a pair cancel each other in their callbacks. */
enum sort { TIMER, CLOCK, PERIODIC, PAIR, OTHER_OF_PAIR, SORTS };

static tickless_timers_t *sets[SETS];
static tickless_loop_t *loop;
static pthread_mutex_t of_loop = PTHREAD_MUTEX_INITIALIZER;
/* Whether this thread runs the loop. */
static _Thread_local bool in_loop;
static tickless_limiter_t *limiters[SETS];
static tickless_keyed_t *keyed;
static tickless_throttle_t *throttle;
static atomic_bool done, undriven;
static atomic_ulong acquired[SETS], of_key[KEYS], calls_in_all;
static uint64_t began;
static bool forks;

static uint64_t draw(uint64_t *state, uint64_t below) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (*state >> 11) % below;
}

static uint64_t real_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* A timer and its account since the last waiting cancel. */
struct own {
  enum sort sort;
  tickless_timer_t timer;
  tickless_periodic_t periodic;
  tickless_clock_timer_t *clock;
  struct own *other;
  unsigned long armings, replaced; /* written by the owner */
  unsigned long calls, restarts;   /* written by the callback */
  int set;
  bool dies;                       /* its callback destroys it, and sets `gone` */
  atomic_bool gone;
  atomic_ullong due;               /* the first deadline since the last waiting cancel */
  uint64_t period, next;
  uint32_t missed;
  atomic_bool running;
};

static uint64_t now_of(struct own *own) {
  uint64_t now;
  OK(tickless_timers_now(sets[own->set], &now));
  return now;
}

static void is_due_at(struct own *own, unsigned long long at) {
  unsigned long long due = atomic_load(&own->due);
  while (at < due && !atomic_compare_exchange_weak(&own->due, &due, at)) continue;
}

static bool begin(struct own *own) {
  CHECK(!atomic_exchange(&own->running, true));
  own->calls++;
  atomic_fetch_add(&calls_in_all, 1);
  bool restarts = own->sort < PERIODIC && own->calls % 3 == 0 && !own->dies;
  own->restarts += restarts;
  return restarts;
}

static void fire(tickless_fired_t *fired, void *data) {
  struct own *own = data;
  uint64_t due, found, overruns;
  OK(tickless_fired_info(fired, &due, &found, NULL, &overruns));
  CHECK(due <= found);
  CHECK(own->sort == PERIODIC || now_of(own) >= atomic_load(&own->due));
  if (begin(own)) OK(tickless_fired_restart(fired, (int64_t)(own->calls % 50 * 1000)));
  if (in_loop) {
    IS(TICKLESS_BUSY, tickless_loop_run(loop, NULL));
    IS(TICKLESS_BUSY, tickless_loop_adopt(loop));
    IS(TICKLESS_BUSY, tickless_loop_destroy(loop));
  }
  if (own->set == VIRTUAL && own->calls % 5 == 0) OK(tickless_virtual_advance(sets[VIRTUAL], 1000));
  if (own->sort == PERIODIC && own->next)
    CHECK(own->missed == TICKLESS_DELAY ? due >= own->next : due == own->next);
  own->next = due + (own->missed == TICKLESS_SKIP ? 1 + overruns : 1) * own->period;
  if (own->sort >= PAIR) {
    tickless_status_t status = tickless_timer_cancel_sync(&own->other->timer, NULL);
    CHECK(status == TICKLESS_OK || status == TICKLESS_WOULD_DEADLOCK);
    IS(TICKLESS_WOULD_DEADLOCK, tickless_timer_cancel_sync(&own->timer, NULL));
  }
  bool dies = own->dies;
  if (dies) {
    IS(TICKLESS_WOULD_DEADLOCK, tickless_timer_cancel_sync(&own->timer, NULL));
    OK(tickless_timer_destroy(&own->timer));
  }
  atomic_store(&own->running, false);
  if (dies) atomic_store(&own->gone, true);
}

static void clock_fire(tickless_clock_fired_t *fired, void *data) {
  struct own *own = data;
  if (begin(own)) OK(tickless_clock_fired_restart(fired, (int64_t)(own->calls % 50 * 1000)));
  atomic_store(&own->running, false);
}

static void create(struct own *own, uint64_t *rng) {
  const uint32_t kinds[] = {TICKLESS_COARSE, TICKLESS_PRECISE, TICKLESS_PRECISE | TICKLESS_DEFERRED};
  own->set = (int)draw(rng, SETS);
  own->dies = false;
  atomic_store(&own->gone, false);
  tickless_timers_t *set = sets[own->set];
  tickless_periodic_options_t options = {.size = sizeof options};
  options.missed = own->missed = (uint32_t)draw(rng, 3);
  options.phase = (uint32_t)draw(rng, 4);
  if (own->sort == CLOCK)
    OK(tickless_clock_timer_create(set, (uint32_t)draw(rng, 3), clock_fire, own, &own->clock));
  else if (own->sort == PERIODIC)
    OK(tickless_periodic_init(&own->periodic, set, &options, fire, own));
  else {
    uint32_t kind = kinds[draw(rng, 3)] | (draw(rng, 2) ? TICKLESS_PIN(0) : 0);
    OK(tickless_timer_init(&own->timer, set, kind, fire, own));
    IS(TICKLESS_ALREADY_INITIALISED, tickless_timer_init(&own->timer, set, kind, fire, own));
  }
}

static tickless_cancel_t cancel(struct own *own) {
  tickless_cancel_t found;
  if (own->sort == CLOCK) OK(tickless_clock_timer_cancel_sync(own->clock, &found));
  else if (own->sort == PERIODIC) OK(tickless_periodic_cancel_sync(&own->periodic, &found));
  else OK(tickless_timer_cancel_sync(&own->timer, &found));
  return found;
}

/* Starts the timer, or starts it again although it may be pending. */
static void start(struct own *own, uint64_t *rng) {
  int64_t after = (int64_t)draw(rng, 1 + (1ULL << draw(rng, 22)));
  own->replaced += own->armings > 0;
  own->armings++;
  if (own->sort == CLOCK) OK(tickless_clock_timer_start(own->clock, after));
  else if (own->sort == PERIODIC) OK(tickless_periodic_start(&own->periodic, after + 20000));
  else {
    is_due_at(own, now_of(own) + (uint64_t)after);
    OK(tickless_timer_start(&own->timer, after));
  }
}

static void act(struct own *own, uint64_t *rng) {
  if (own->dies) { /* Until its callback has destroyed it, no other thread uses it. */
    if (!atomic_load(&own->gone)) return;
    CHECK(own->calls == 1 && own->armings == 1 && own->restarts == 0);
    IS(TICKLESS_NOT_INITIALISED, tickless_timer_start(&own->timer, 0));
    create(own, rng);
    own->armings = own->calls = 0;
  }
  bool can_replace = own->sort != PERIODIC;
  if (!can_replace || draw(rng, 3)) {
    tickless_cancel_t found = cancel(own);
    CHECK(!atomic_load(&own->running) || own->sort >= PAIR);
    if (own->sort < PERIODIC) {
      unsigned long in_all = own->armings + own->restarts;
      unsigned long optional = own->replaced + own->restarts + (found == TICKLESS_CANCEL_RUNNING);
      /* Each arming fires, is cancelled, or is replaced by the next. */
      CHECK(own->calls + (found == TICKLESS_CANCEL_PENDING) <= in_all);
      CHECK(own->calls + (found == TICKLESS_CANCEL_PENDING) + optional >= in_all);
    }
    own->armings = own->replaced = own->calls = own->restarts = own->next = 0;
    own->period = 20000 + draw(rng, 1 << 20);
    atomic_store(&own->due, UINT64_MAX);
    if (draw(rng, 8) == 0) {
      if (own->sort == CLOCK) OK(tickless_clock_timer_destroy(own->clock));
      else if (own->sort == PERIODIC) OK(tickless_periodic_destroy(&own->periodic));
      else if (own->sort == TIMER) OK(tickless_timer_destroy(&own->timer));
      if (own->sort < PAIR) create(own, rng);
    }
    own->dies = own->sort == TIMER && draw(rng, 8) == 0;
  }
  if (own->sort == PERIODIC) OK(tickless_periodic_start(&own->periodic, (int64_t)own->period));
  else start(own, rng);
}

/* Takes permits of a limiter in every way, and counts them. */
static void use_permits(uint64_t *rng) {
  uint64_t which = draw(rng, SETS), permits = 1 + draw(rng, 3);
  tickless_status_t status = draw(rng, 2)
      ? tickless_limiter_try_acquire(limiters[which], permits)
      : tickless_limiter_acquire(limiters[which], permits, (int64_t)draw(rng, 2 * MS));
  if (status == TICKLESS_SHUT) {
    CHECK(which == VIRTUAL && atomic_load(&done));
    return;
  }
  CHECK(status == TICKLESS_OK || status == TICKLESS_EMPTY || status == TICKLESS_TIMED_OUT);
  if (status == TICKLESS_OK) atomic_fetch_add(&acquired[which], permits);
  uint8_t key = (uint8_t)draw(rng, KEYS);
  status = tickless_keyed_try_acquire(keyed, &key, 1, permits);
  CHECK(status == TICKLESS_OK || status == TICKLESS_EMPTY);
  if (status == TICKLESS_OK) atomic_fetch_add(&of_key[key], permits);
  size_t keys;
  OK(tickless_keyed_count(keyed, draw(rng, 2), &keys));
  CHECK(keys <= KEYS);
}

static void count_local(tickless_local_t *local, tickless_key_t key, void *data, void *context) {
  bool pending;
  OK(tickless_local_is_pending(local, key, &pending));
  CHECK(!pending);
  (*(unsigned long *)data)++;
  (*(unsigned long *)context)++;
}

static void count_fixed(tickless_fixed_t *fixed, tickless_key_t key, void *data, void *context) {
  (void)key;
  IS(TICKLESS_BUSY, tickless_fixed_destroy(fixed));
  (*(unsigned long *)data)++;
  (*(unsigned long *)context)++;
}

/* Timers of this thread: each arming fires, or is cancelled, once. */
static void use_own_timers(uint64_t *rng) {
  tickless_local_t *local;
  tickless_fixed_t *fixed;
  tickless_key_t key[2];
  unsigned long calls[2] = {0, 0}, armings[2] = {0, 0}, in_all = 0;
  size_t fired = 0, more;
  uint64_t now = 1;
  bool pending;
  uint32_t number;
  OK(tickless_local_create_manual(now, 1000, (uint32_t)draw(rng, 2), &local));
  OK(tickless_fixed_create_manual(now, &fixed));
  OK(tickless_fixed_add_class(fixed, (int64_t)draw(rng, 10000), &number));
  OK(tickless_local_insert(local, (uint32_t)draw(rng, 2), &calls[0], &key[0]));
  OK(tickless_fixed_insert(fixed, number, &calls[1], &key[1]));
  for (int round = 0; round < 20; round++) {
    OK(tickless_local_cancel(local, key[0], &pending));
    armings[0] -= pending;
    OK(tickless_fixed_cancel(fixed, key[1], &pending));
    armings[1] -= pending;
    CHECK(calls[0] == armings[0] && calls[1] == armings[1]);
    OK(tickless_local_start(local, key[0], (int64_t)draw(rng, 5000)));
    OK(tickless_fixed_start(fixed, key[1]));
    armings[0]++;
    armings[1]++;
    now += draw(rng, 10000);
    OK(tickless_local_advance(local, now, 0, count_local, &in_all, &more));
    fired += more;
    OK(tickless_fixed_advance(fixed, now, 0, count_fixed, &in_all, &more));
    fired += more;
  }
  CHECK(in_all == fired && in_all == calls[0] + calls[1]);
  OK(tickless_local_destroy(local));
  OK(tickless_fixed_destroy(fixed));
}

/* In a forked child no call waits, and it has timers of its own. */
static void child(struct own *own, uint64_t *rng) {
  tickless_timers_t *set;
  atomic_store(&done, true);
  IS(TICKLESS_SHUT, tickless_limiter_acquire(limiters[0], 1, INT64_MAX));
  for (int i = 0; i < SORTS; i++) CHECK(own[i].dies || cancel(&own[i]) == TICKLESS_CANCEL_IDLE);
  for (int i = 0; i < SETS; i++) OK(tickless_timers_stop(sets[i]));
  OK(tickless_timers_start(NULL, &set));
  sets[0] = sets[1] = sets[2] = set;
  struct own mine = {.sort = (enum sort)draw(rng, PAIR), .period = MS};
  create(&mine, rng);
  mine.set = WITH_THREADS; /* all three are this one */
  unsigned long before = atomic_load(&calls_in_all);
  if (mine.sort == PERIODIC) OK(tickless_periodic_start(&mine.periodic, MS));
  else start(&mine, rng);
  UNTIL(atomic_load(&calls_in_all) > before);
  (void)cancel(&mine);
  _exit(0);
}

static void fork_once(struct own *own, uint64_t *rng) {
  int status;
  pid_t pid = fork();
  if (pid == 0) child(own, rng);
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* Runs the loop unless another thread does, and moves virtual time. */
static void drive_once(uint64_t *rng) {
  uint64_t realtime;
  if (pthread_mutex_trylock(&of_loop) == 0) {
    OK(tickless_loop_adopt(loop));
    in_loop = true;
    OK(tickless_loop_run(loop, NULL));
    in_loop = false;
    CHECK(pthread_mutex_unlock(&of_loop) == 0);
  }
  OK(tickless_timers_now_on(sets[VIRTUAL], TICKLESS_CLOCK_REALTIME, &realtime));
  switch (draw(rng, 8)) {
    case 0: OK(tickless_virtual_set_realtime(sets[VIRTUAL], realtime - draw(rng, 1 << 20))); break;
    case 1: OK(tickless_virtual_set_realtime(sets[VIRTUAL], realtime + draw(rng, 1 << 20))); break;
    case 2: OK(tickless_virtual_suspend(sets[VIRTUAL], (int64_t)draw(rng, 1 << 20))); break;
    case 3: OK(tickless_virtual_advance_to_next(sets[VIRTUAL], NULL)); break;
    default: OK(tickless_virtual_advance(sets[VIRTUAL], (int64_t)draw(rng, 1 << 20))); break;
  }
}

static void *drive(void *data) {
  uint64_t rng = *(uint64_t *)data;
  while (!atomic_load(&undriven)) {
    drive_once(&rng);
    if (draw(&rng, 16) == 0) sleep_ms(1);
  }
  return NULL;
}

static void *attack(void *data) {
  uint64_t rng = *(uint64_t *)data;
  struct own own[SORTS];
  char text[600];
  tickless_worker_t *worker;
  memset(own, 0, sizeof own);
  for (int i = 0; i < SORTS; i++) {
    own[i].sort = (enum sort)i;
    own[i].other = &own[i == PAIR ? OTHER_OF_PAIR : PAIR];
    own[i].period = 20000;
    create(&own[i], &rng);
  }
  OK(tickless_throttle_join(throttle, &worker));
  while (!atomic_load(&done)) {
    for (int i = 0; i < 20; i++) act(&own[draw(&rng, SORTS)], &rng);
    drive_once(&rng);
    use_permits(&rng);
    use_own_timers(&rng);
    OK(tickless_worker_check(worker, NULL));
    if (draw(&rng, 4) == 0) OK(tickless_worker_rest(worker));
    if (draw(&rng, 4) == 0) {
      OK(tickless_worker_leave(worker));
      OK(tickless_throttle_join(throttle, &worker));
    }
    size_t room = 1 + draw(&rng, sizeof text), needed;
    memset(text, 'x', sizeof text);
    OK(tickless_timers_list(sets[draw(&rng, SETS)], text, room, &needed));
    size_t length = strlen(text) + 1;
    /* It is not cut off inside of a character, such as that of microseconds. */
    CHECK(needed <= room ? length == needed : length <= room && length + 2 > room);
    if (forks && draw(&rng, 4) == 0) fork_once(own, &rng);
  }
  OK(tickless_worker_leave(worker));
  while (own[TIMER].dies && !atomic_load(&own[TIMER].gone)) drive_once(&rng);
  for (int i = own[TIMER].dies; i < SORTS; i++) {
    (void)cancel(&own[i]);
    if (i == CLOCK) OK(tickless_clock_timer_destroy(own[i].clock));
    else if (i == PERIODIC) OK(tickless_periodic_destroy(&own[i].periodic));
    else OK(tickless_timer_destroy(&own[i].timer));
  }
  /* Waits until the limiter is closed, in virtual time that no longer passes. */
  while (tickless_limiter_acquire(limiters[VIRTUAL], QUOTA, INT64_MAX) == TICKLESS_OK)
    atomic_fetch_add(&acquired[VIRTUAL], QUOTA);
  IS(TICKLESS_SHUT, tickless_limiter_try_acquire(limiters[VIRTUAL], 1));
  return NULL;
}

int main(int count, char **arguments) {
  long ms = count > 1 ? atol(arguments[1]) : 500;
  uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
  forks = count > 3;
  printf("attack %ld %llu%s\n", ms, (unsigned long long)seed, forks ? " forks" : "");
  fflush(stdout);
  tickless_options_t options = {.size = sizeof options, .bases = 2, .tick_ns = 100000};
  options.flags = seed % 2 ? TICKLESS_EXPIRY_THREADS : 0;
  tickless_quota_t quota = {.size = sizeof quota, .quota = QUOTA, .period_ns = MS, .extra = 5};
  pthread_t threads[THREADS], driver;
  uint64_t seeds[THREADS + 1];
  for (int i = 0; i <= THREADS; i++) seeds[i] = (seed * 8 + (uint64_t)i + 1) * 0x9e3779b97f4a7c15;
  OK(tickless_timers_start(&options, &sets[WITH_THREADS]));
  options.bases = 1;
  OK(tickless_timers_start_in_loops(&options, 1, &sets[IN_LOOP], &loop));
  OK(tickless_timers_start_virtual(&options, SECOND, &sets[VIRTUAL]));
  for (int i = 0; i < SETS; i++) OK(tickless_limiter_create(sets[i], &quota, &limiters[i]));
  OK(tickless_keyed_create(sets[WITH_THREADS], &quota, &keyed));
  quota = (tickless_quota_t){.size = sizeof quota, .quota = MS, .period_ns = 2 * MS};
  OK(tickless_throttle_create(sets[WITH_THREADS], &quota, &throttle));
  began = real_now();
  CHECK(pthread_create(&driver, NULL, drive, &seeds[THREADS]) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, attack, &seeds[i]) == 0);
  sleep_ms(ms);
  UNTIL(atomic_load(&calls_in_all) > 100);
  atomic_store(&done, true);
  sleep_ms(5);
  OK(tickless_limiter_close(limiters[VIRTUAL]));
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  atomic_store(&undriven, true);
  CHECK(pthread_join(driver, NULL) == 0);
  uint64_t periods = 2 + (real_now() - began) / MS;
  for (int i = 0; i < SETS; i++) {
    tickless_quota_counts_t counts = {.size = sizeof counts};
    OK(tickless_limiter_stats(limiters[i], NULL, &counts));
    CHECK(counts.used == atomic_load(&acquired[i]) && counts.waiting == 0);
    CHECK(i == VIRTUAL || counts.used <= QUOTA * periods + 5);
    OK(tickless_limiter_destroy(limiters[i]));
  }
  for (int i = 0; i < KEYS; i++) CHECK(atomic_load(&of_key[i]) <= QUOTA * periods + 5);
  OK(tickless_keyed_destroy(keyed));
  OK(tickless_throttle_destroy(throttle));
  for (int i = 0; i < SETS; i++) OK(tickless_timers_stop(sets[i]));
  OK(tickless_loop_adopt(loop));
  OK(tickless_loop_destroy(loop));
  printf("%lu callbacks\n", atomic_load(&calls_in_all));
  return 0;
}
