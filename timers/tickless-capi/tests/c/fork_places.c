/* Timers in odd places: a process that is stopped and goes on, one whose clocks are those of a time
 * namespace, process 1 of a namespace, and a library that is loaded and unloaded again. And a worker
 * of a throttle in a forked child. */
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t now_ns(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static atomic_int calls;
static _Atomic uint64_t called_at;

static void call(tickless_fired_t *fired, void *data) {
  (void)fired;
  (void)data;
  atomic_store(&called_at, now_ns());
  atomic_fetch_add(&calls, 1);
}

/* Timers of both kinds fire once, and not early by the system's clock. */
static void timers_fire(void) {
  tickless_timers_t *timers;
  OK(tickless_timers_start(NULL, &timers));
  for (uint32_t kind = TICKLESS_COARSE; kind <= TICKLESS_PRECISE; kind++) {
    tickless_timer_t timer = {{0}};
    int before = atomic_load(&calls);
    OK(tickless_timer_init(&timer, timers, kind, call, NULL));
    uint64_t due = now_ns() + 20 * MS;
    OK(tickless_timer_start(&timer, 20 * MS));
    UNTIL(atomic_load(&calls) == before + 1);
    CHECK(atomic_load(&called_at) >= due);
    OK(tickless_timer_destroy(&timer));
    CHECK(atomic_load(&calls) == before + 1);
  }
  OK(tickless_timers_stop(timers));
}

static void ends_well(pid_t pid) {
  int status;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
}

static void a_stopped_process_goes_on(void) {
  pid_t pid = fork();
  if (pid == 0) {
    for (int round = 0; round < 5; round++) timers_fire();
    _exit(0);
  }
  for (int round = 0; round < 10; round++) {
    sleep_ms(10);
    kill(pid, SIGSTOP);
    sleep_ms(10);
    kill(pid, SIGCONT);
  }
  ends_well(pid);
}

static void write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY);
  CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text) && close(file) == 0);
}

/* Timers of the parent, which another clock moves, and a child in namespaces of its own. */
static void in_namespaces(int kinds, const char *offsets) {
  pid_t pid = fork();
  if (pid == 0) {
    timers_fire();
    if (unshare(CLONE_NEWUSER | kinds) != 0) {
      fprintf(stderr, "SKIPPED: there are no namespaces here\n");
      _exit(0);
    }
    uint64_t before = now_ns();
    if (offsets) write_file("/proc/self/timens_offsets", offsets);
    pid_t inner = fork();
    if (inner == 0) {
      CHECK(!(kinds & CLONE_NEWPID) || getpid() == 1);
      CHECK(!offsets || now_ns() > before + 1000 * SECOND);
      timers_fire();
      _exit(0);
    }
    ends_well(inner);
    _exit(0);
  }
  ends_well(pid);
}

/* The functions of a library that is no part of the program. */
static void a_library_is_unloaded(void) {
  for (int round = 0; round < 3; round++) {
    void *library = dlopen("libtickless.so", RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    tickless_status_t (*start)(const tickless_options_t *, tickless_timers_t **);
    tickless_status_t (*stop)(tickless_timers_t *);
    *(void **)&start = dlsym(library, "tickless_timers_start");
    *(void **)&stop = dlsym(library, "tickless_timers_stop");
    tickless_timers_t *timers;
    OK(start(NULL, &timers));
    OK(stop(timers));
    CHECK(dlclose(library) == 0);
  }
}

static void a_worker_in_a_child_gets_an_error(void) {
  tickless_timers_t *timers;
  tickless_throttle_t *throttle;
  tickless_worker_t *worker;
  tickless_quota_t quota = {.size = sizeof quota, .quota = 50 * MS, .period_ns = 50 * MS};
  OK(tickless_timers_start(NULL, &timers));
  OK(tickless_throttle_create(timers, &quota, &throttle));
  OK(tickless_throttle_join(throttle, &worker));
  for (uint64_t end = now_ns() + 50 * MS; now_ns() < end;) OK(tickless_worker_check(worker, NULL));
  pid_t pid = fork();
  if (pid == 0) {
    /* The thread of the child has used less CPU time than that of the parent. */
    IS(TICKLESS_SHUT, tickless_worker_check(worker, NULL));
    IS(TICKLESS_SHUT, tickless_worker_rest(worker));
    OK(tickless_worker_leave(worker));
    _exit(0);
  }
  ends_well(pid);
  OK(tickless_worker_leave(worker));
  OK(tickless_throttle_destroy(throttle));
  OK(tickless_timers_stop(timers));
}

int main(void) {
  a_library_is_unloaded();
  a_stopped_process_goes_on();
  in_namespaces(CLONE_NEWPID, NULL);
  in_namespaces(CLONE_NEWTIME, "monotonic 5000 0\nboottime 5000 0\n");
  a_worker_in_a_child_gets_an_error();
  return 0;
}
