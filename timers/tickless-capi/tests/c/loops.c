/* Timers in the program's own loop, through one descriptor. */
#include "check.h"

#include <poll.h>
#include <pthread.h>

static void count(tickless_fired_t *fired, void *data) {
  int *counter = data;
  uint64_t deadline, found;
  OK(tickless_fired_info(fired, &deadline, &found, NULL, NULL));
  CHECK(found >= deadline);
  ++*counter;
}

static tickless_loop_t *in_callback;

static void use_loop(tickless_fired_t *fired, void *data) {
  uint64_t left;
  count(fired, data);
  IS(TICKLESS_BUSY, tickless_loop_run(in_callback, NULL));
  IS(TICKLESS_BUSY, tickless_loop_timeout(in_callback, &left));
  IS(TICKLESS_BUSY, tickless_loop_adopt(in_callback));
  IS(TICKLESS_BUSY, tickless_loop_destroy(in_callback));
}

static bool is_readable(tickless_loop_t *loop, int timeout_ms) {
  struct pollfd waits = {.events = POLLIN};
  OK(tickless_loop_fd(loop, &waits.fd));
  return poll(&waits, 1, timeout_ms) == 1;
}

static void fires_in_its_loop(void) {
  tickless_timers_t *timers;
  tickless_loop_t *loop;
  tickless_timer_t precise = {{0}}, coarse = {{0}};
  int fired = 0;
  uint64_t left, ran;
  OK(tickless_timers_start_in_loops(NULL, 1, &timers, &loop));
  in_callback = loop;
  OK(tickless_timer_init(&precise, timers, TICKLESS_PRECISE, use_loop, &fired));
  OK(tickless_timer_init(&coarse, timers, TICKLESS_COARSE, count, &fired));
  CHECK(!is_readable(loop, 0));
  OK(tickless_loop_timeout(loop, &left));
  CHECK(left == TICKLESS_NEVER);
  OK(tickless_timer_start(&precise, 500 * MS));
  OK(tickless_timer_start(&coarse, 510 * MS));
  OK(tickless_loop_timeout(loop, &left));
  CHECK(left <= (uint64_t)(500 * MS));
  OK(tickless_loop_run(loop, &ran));
  CHECK(ran == 0 && fired == 0);
  while (fired < 2) {
    CHECK(is_readable(loop, 60000));
    OK(tickless_loop_run(loop, NULL));
  }
  IS(TICKLESS_BUSY, tickless_timers_stop(timers));
  OK(tickless_timer_destroy(&precise));
  OK(tickless_timer_destroy(&coarse));
  OK(tickless_timers_stop(timers));
  OK(tickless_loop_destroy(loop));
}

/* Another thread arms a timer that is earlier than the one the loop waits for: the descriptor wakes
 * the loop. */
static void *arm(void *data) {
  tickless_timer_t *timer = data;
  sleep_ms(20);
  OK(tickless_timer_start(timer, 0));
  return NULL;
}

static void arming_in_another_thread_wakes_the_loop(void) {
  tickless_timers_t *timers;
  tickless_loop_t *loops[2];
  tickless_timer_t one = {{0}}, far = {{0}};
  int fired = 0;
  pthread_t thread;
  tickless_options_t options = {.size = sizeof options, .bases = 2};
  OK(tickless_timers_start_in_loops(&options, 2, &timers, loops));
  OK(tickless_timer_init(&one, timers, TICKLESS_PRECISE | TICKLESS_PIN(1), count, &fired));
  OK(tickless_timer_init(&far, timers, TICKLESS_PRECISE | TICKLESS_PIN(1), count, &fired));
  OK(tickless_timer_start(&far, 3600 * SECOND));
  CHECK(pthread_create(&thread, NULL, arm, &one) == 0);
  CHECK(is_readable(loops[1], 60000) && !is_readable(loops[0], 0));
  OK(tickless_loop_run(loops[0], NULL));
  CHECK(fired == 0);
  while (!fired) OK(tickless_loop_run(loops[1], NULL));
  CHECK(pthread_join(thread, NULL) == 0);
  OK(tickless_timer_destroy(&one));
  OK(tickless_timer_destroy(&far));
  OK(tickless_timers_stop(timers));
  OK(tickless_loop_destroy(loops[0]));
  OK(tickless_loop_destroy(loops[1]));
}

static void *other_thread(void *data) {
  tickless_loop_t *loop = data;
  int descriptor;
  IS(TICKLESS_WRONG_THREAD, tickless_loop_run(loop, NULL));
  IS(TICKLESS_WRONG_THREAD, tickless_loop_destroy(loop));
  OK(tickless_loop_fd(loop, &descriptor));
  OK(tickless_loop_adopt(loop));
  OK(tickless_loop_run(loop, NULL));
  return NULL;
}

static void misuse(void) {
  tickless_timers_t *timers;
  tickless_loop_t *loop = NULL;
  int descriptor;
  uint64_t left;
  pthread_t thread;
  tickless_options_t options = {.size = sizeof options, .bases = 3};
  IS(TICKLESS_NULL_POINTER, tickless_timers_start_in_loops(NULL, 1, NULL, &loop));
  IS(TICKLESS_NULL_POINTER, tickless_timers_start_in_loops(NULL, 1, &timers, NULL));
  IS(TICKLESS_OUT_OF_RANGE, tickless_timers_start_in_loops(NULL, 0, &timers, &loop));
  IS(TICKLESS_OUT_OF_RANGE, tickless_timers_start_in_loops(NULL, 65536, &timers, &loop));
  IS(TICKLESS_OUT_OF_RANGE, tickless_timers_start_in_loops(&options, 2, &timers, &loop));
  IS(TICKLESS_NULL_POINTER, tickless_loop_fd(NULL, &descriptor));
  IS(TICKLESS_NULL_POINTER, tickless_loop_run(NULL, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_loop_timeout(NULL, &left));
  IS(TICKLESS_NULL_POINTER, tickless_loop_adopt(NULL));
  OK(tickless_loop_destroy(NULL));
  OK(tickless_timers_start_in_loops(NULL, 1, &timers, &loop));
  IS(TICKLESS_NULL_POINTER, tickless_loop_fd(loop, NULL));
  IS(TICKLESS_NULL_POINTER, tickless_loop_timeout(loop, NULL));
  CHECK(pthread_create(&thread, NULL, other_thread, loop) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  IS(TICKLESS_WRONG_THREAD, tickless_loop_run(loop, NULL));
  OK(tickless_loop_adopt(loop));
  OK(tickless_timers_stop(timers));
  OK(tickless_loop_destroy(loop));
}

int main(void) {
  fires_in_its_loop();
  arming_in_another_thread_wakes_the_loop();
  misuse();
  return 0;
}
