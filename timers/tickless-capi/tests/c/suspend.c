/* The CPU's counter goes on for an hour, or restarts, while CLOCK_MONOTONIC stands: a suspend, or a
 * process that was restored on another machine. No pending timer is early, no new one is late.
 *
 * The counter is trapped on the test's threads, except in the vDSO, as in tickless/tests/suspend.rs.
 * Valgrind reads the counter itself, so there the test does nothing. With the name of a file, nothing
 * is trapped: the test makes this file and waits until it is removed, and ci/criu.sh stops and
 * restores it then. */
#include "check.h"

#ifndef __x86_64__
int main(void) { return 0; }
#else

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#define HOUR 10000000000000ULL

static atomic_ullong ahead;
static const char *mark;
static uintptr_t vdso[2];

static void on_fault(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  uintptr_t at = (uintptr_t)registers[REG_RIP];
  const unsigned char *code = (const unsigned char *)at;
  bool has_id = code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;
  uint64_t count;
  (void)number, (void)info;
  if (!has_id && !(code[0] == 0x0f && code[1] == 0x31)) {
    signal(SIGSEGV, SIG_DFL);
    return;
  }
  prctl(PR_SET_TSC, PR_TSC_ENABLE);
  count = __rdtsc();
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
  if (at < vdso[0] || at >= vdso[1]) count += atomic_load(&ahead);
  registers[REG_RAX] = (greg_t)(count & 0xffffffff);
  registers[REG_RDX] = (greg_t)(count >> 32);
  registers[REG_RIP] += has_id ? 3 : 2;
}

static void trap_the_counter(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  CHECK(maps);
  while (fgets(line, sizeof line, maps)) {
    if (strstr(line, "[vdso]")) CHECK(sscanf(line, "%lx-%lx", &vdso[0], &vdso[1]) == 2);
  }
  fclose(maps);
  CHECK(vdso[1] > vdso[0] && sigaction(SIGSEGV, &action, NULL) == 0);
  CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
}

static void suspend(void) { atomic_fetch_add(&ahead, HOUR); }

static void checkpoint(void) {
  FILE *file = fopen(mark, "w");
  CHECK(file && fclose(file) == 0);
  UNTIL(access(mark, F_OK) != 0);
}

static void restart(void) { atomic_fetch_sub(&ahead, __rdtsc() - 1000000); }

static uint64_t monotonic_ns(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Checks that `at` is this long after `begun`, or at most a second later: three where CRIU, which
 * stops the process for five, takes time of its own. */
static void in_time(uint64_t at, uint64_t begun, long long after) {
  const long long took = (long long)(at - begun);
  CHECK(took >= after - MS / 2 && took <= after + (mark ? 3 : 1) * SECOND);
}

static void report(tickless_fired_t *fired, void *data) {
  atomic_ullong *at = data;
  (void)fired;
  atomic_store(at, monotonic_ns());
}

static void pending_and_new_timers(const tickless_timers_t *timers, void (*jump)(void)) {
  const uint32_t kinds[2] = {TICKLESS_COARSE, TICKLESS_PRECISE};
  for (int kind = 0; kind < 2; kind++) {
    tickless_timer_t far = {{0}}, pending = {{0}}, added = {{0}};
    tickless_periodic_t ticks = {{0}};
    atomic_ullong far_at = 0, pending_at = 0, added_at = 0, tick_at = 0;
    uint64_t begun = monotonic_ns(), jumped;
    OK(tickless_timer_init(&far, timers, kinds[kind], report, &far_at));
    OK(tickless_timer_init(&pending, timers, kinds[kind], report, &pending_at));
    OK(tickless_timer_init(&added, timers, kinds[kind], report, &added_at));
    OK(tickless_periodic_init(&ticks, timers, NULL, report, &tick_at));
    OK(tickless_timer_start(&far, 12 * SECOND));
    OK(tickless_timer_start(&pending, 300 * MS));
    OK(tickless_periodic_start(&ticks, 700 * MS));
    sleep_ms(100);
    jump();
    jumped = monotonic_ns();
    OK(tickless_timer_start(&added, 100 * MS));
    UNTIL(atomic_load(&added_at) && atomic_load(&pending_at) && atomic_load(&tick_at));
    in_time(added_at, jumped, 100 * MS);
    in_time(pending_at, begun, 300 * MS);
    in_time(tick_at, begun, 700 * MS);
    CHECK(!atomic_load(&far_at));
    OK(tickless_timer_destroy(&far));
    OK(tickless_timer_destroy(&pending));
    OK(tickless_timer_destroy(&added));
    OK(tickless_periodic_destroy(&ticks));
  }
}

static void limiters(const tickless_timers_t *timers, void (*jump)(void)) {
  /* CLOCK_MONOTONIC goes on while CRIU works. */
  const uint64_t period = mark ? 8 * SECOND : 600 * MS;
  tickless_quota_t quota = {.size = sizeof quota, .quota = 1, .period_ns = period};
  tickless_limiter_t *limiter;
  tickless_keyed_t *keyed;
  const uint8_t key = 7;
  uint64_t begun, after;
  OK(tickless_limiter_create(timers, &quota, &limiter));
  OK(tickless_keyed_create(timers, &quota, &keyed));
  OK(tickless_limiter_acquire(limiter, 1, SECOND));
  OK(tickless_keyed_try_acquire(keyed, &key, 1, 1));
  jump();
  begun = monotonic_ns();
  OK(tickless_limiter_retry_after(limiter, 1, &after));
  CHECK(after <= period);
  IS(TICKLESS_EMPTY, tickless_keyed_try_acquire(keyed, &key, 1, 1));
  OK(tickless_limiter_acquire(limiter, 1, 12 * SECOND));
  in_time(monotonic_ns(), begun, (long long)after);
  while (tickless_keyed_try_acquire(keyed, &key, 1, 1) != TICKLESS_OK) sleep_ms(1);
  CHECK(monotonic_ns() - begun <= period + SECOND);
  OK(tickless_limiter_destroy(limiter));
  OK(tickless_keyed_destroy(keyed));
}

static void ignore(tickless_local_t *local, tickless_key_t key, void *data, void *context) {
  (void)local, (void)key, (void)data, (void)context;
}

static void local_timers(void (*jump)(void)) {
  tickless_local_t *local;
  tickless_key_t key;
  OK(tickless_local_create(0, TICKLESS_PUSH_OUT_LAZY, &local));
  OK(tickless_local_insert(local, TICKLESS_PRECISE, NULL, &key));
  for (int jumps_first = 0; jumps_first < 2; jumps_first++) {
    uint64_t begun, now;
    size_t fired = 0;
    if (jumps_first) jump();
    begun = monotonic_ns();
    OK(tickless_local_start(local, key, 100 * MS));
    if (!jumps_first) jump();
    while (!fired) {
      OK(tickless_local_now(local, &now));
      OK(tickless_local_advance(local, now, 0, ignore, NULL, &fired));
      CHECK(monotonic_ns() < begun + 12 * SECOND);
    }
    in_time(monotonic_ns(), begun, 100 * MS);
  }
  OK(tickless_local_destroy(local));
}

int main(int count, char **arguments) {
  void (*const jumps[])(void) = {suspend, restart, checkpoint};
  const char *preloaded = getenv("LD_PRELOAD");
  tickless_options_t options = {.size = sizeof options, .bases = 1};
  tickless_timers_t *timers;
  if (preloaded && strstr(preloaded, "vgpreload")) return 0;
  mark = arguments[1];
  if (count == 1) trap_the_counter();
  OK(tickless_timers_start(&options, &timers));
  for (int jump = count == 1 ? 0 : 2; jump < count + 1; jump++) {
    pending_and_new_timers(timers, jumps[jump]);
    limiters(timers, jumps[jump]);
    local_timers(jumps[jump]);
  }
  OK(tickless_timers_stop(timers));
  return 0;
}
#endif
