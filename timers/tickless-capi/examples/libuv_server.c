/* Tickless in libuv's loop: one more descriptor, and timers that any thread may arm.
 *
 * A worker thread receives requests and gives each a deadline of 20 ms. It answers some in time and
 * cancels their timers; the others time out in the loop. One uv_poll_t drives all timers.
 *
 * cc libuv_server.c $(pkg-config --cflags --libs tickless libuv)
 */
#define _GNU_SOURCE
#include <tickless.h>
#include <uv.h>

#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 100 };

struct request {
  tickless_timer_t deadline;
  struct server *server;
};

struct server {
  tickless_loop_t *driver;
  uv_poll_t poll;
  uv_async_t done; /* signalled when the worker has handed in and cancelled all requests */
  unsigned timed_out, answered; /* written by the loop */
  unsigned cancelled;           /* written by the worker, read after `done` */
  struct request requests[REQUESTS];
};

static void check(tickless_status_t status) {
  if (status == TICKLESS_OK) return;
  fprintf(stderr, "%s\n", tickless_error_text());
  exit(1);
}

static void must(int result) {
  if (result >= 0) return;
  fprintf(stderr, "%s\n", uv_strerror(result));
  exit(1);
}

static void stop_when_done(struct server *server) {
  if (server->timed_out + server->answered < REQUESTS) return;
  uv_close((uv_handle_t *)&server->poll, NULL);
  uv_close((uv_handle_t *)&server->done, NULL);
}

/* Runs on the loop's thread, inside tickless_loop_run. */
static void expired(tickless_fired_t *fired, void *data) {
  (void)fired;
  struct request *request = data;
  request->server->timed_out++;
}

static void readable(uv_poll_t *poll, int status, int events) {
  struct server *server = poll->data;
  (void)events;
  must(status);
  check(tickless_loop_run(server->driver, NULL));
  stop_when_done(server);
}

/* The worker thread: arms timers that the loop fires, and cancels every other one. */
static void submit(void *data) {
  struct server *server = data;
  tickless_cancel_t found;
  for (int i = 0; i < REQUESTS; i++) {
    check(tickless_timer_start(&server->requests[i].deadline, 20000000));
  }
  for (int i = 0; i < REQUESTS; i += 2) {
    check(tickless_timer_cancel_sync(&server->requests[i].deadline, &found));
    server->cancelled += found == TICKLESS_CANCEL_PENDING;
  }
  must(uv_async_send(&server->done));
}

static void all_submitted(uv_async_t *done) {
  struct server *server = done->data;
  server->answered = server->cancelled;
  stop_when_done(server);
}

int main(void) {
  static struct server server;
  tickless_timers_t *timers;
  uv_thread_t worker;
  int descriptor;
  check(TICKLESS_ABI_CHECK());
  check(tickless_timers_start_in_loops(NULL, 1, &timers, &server.driver));
  check(tickless_loop_fd(server.driver, &descriptor));
  for (int i = 0; i < REQUESTS; i++) {
    struct request *request = &server.requests[i];
    request->server = &server;
    check(tickless_timer_init(&request->deadline, timers, TICKLESS_PRECISE, expired, request));
  }
  uv_loop_t *loop = uv_default_loop();
  must(uv_poll_init(loop, &server.poll, descriptor));
  must(uv_async_init(loop, &server.done, all_submitted));
  server.poll.data = server.done.data = &server;
  must(uv_poll_start(&server.poll, UV_READABLE, readable));
  must(uv_thread_create(&worker, submit, &server));
  must(uv_run(loop, UV_RUN_DEFAULT));
  must(uv_thread_join(&worker));
  must(uv_loop_close(loop));
  printf("%u answered, %u timed out\n", server.answered, server.timed_out);
  if (server.answered + server.timed_out != REQUESTS || server.timed_out < REQUESTS / 2) return 1;
  for (int i = 0; i < REQUESTS; i++) check(tickless_timer_destroy(&server.requests[i].deadline));
  check(tickless_timers_stop(timers));
  check(tickless_loop_destroy(server.driver));
  return 0;
}
