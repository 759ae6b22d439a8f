/* An echo server with one thread and plain epoll, which closes connections that are idle too long.
 *
 * It uses local timers: no thread, no timerfd, no lock. The server pushes out the idle timeout of a
 * connection whenever data arrives, which costs some nanoseconds and no system call.
 *
 * Usage: echo_server PORT IDLE_MS, or echo_server --self-test
 */
#define _GNU_SOURCE
#include <tickless.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000

struct server {
  tickless_local_t *timers;
  int epoll, listener;
  uint64_t idle_ns;
  uint64_t now; /* read once per turn of the loop */
  unsigned open, closed_idle, closed_by_peer;
};

struct connection {
  int fd;
  tickless_key_t idle;
};

static void check(tickless_status_t status) {
  if (status == TICKLESS_OK) return;
  fprintf(stderr, "%s\n", tickless_error_text());
  exit(1);
}

static int must(int result, const char *what) {
  if (result >= 0) return result;
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Restarts the idle timeout of the connection. It uses a point in time, because local timers
 * measure durations from the last advance, which was before the loop slept. */
static void push_out(struct server *server, struct connection *connection) {
  uint64_t deadline = server->now + server->idle_ns;
  check(tickless_local_start_range(server->timers, connection->idle, deadline, deadline));
}

static void close_connection(struct server *server, struct connection *connection) {
  check(tickless_local_remove(server->timers, connection->idle, NULL));
  close(connection->fd);
  free(connection);
  server->open--;
}

/* Called by tickless_local_advance, in the thread of the loop. */
static void idle_timeout(tickless_local_t *timers, tickless_key_t key, void *data, void *context) {
  (void)timers;
  (void)key;
  struct server *server = context;
  server->closed_idle++;
  close_connection(server, data);
}

static void accept_all(struct server *server) {
  int fd;
  while ((fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) {
      close(fd);
      continue;
    }
    connection->fd = fd;
    check(tickless_local_insert(server->timers, TICKLESS_COARSE, connection, &connection->idle));
    push_out(server, connection);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    must(epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
    server->open++;
  }
}

static void echo(struct server *server, struct connection *connection) {
  char bytes[4096];
  ssize_t got = read(connection->fd, bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  /* Close the connection of a peer that does not read what it is sent. */
  if (got <= 0 || send(connection->fd, bytes, (size_t)got, MSG_NOSIGNAL) != got) {
    server->closed_by_peer++;
    close_connection(server, connection);
    return;
  }
  push_out(server, connection);
}

/* How long epoll may wait: until the next timer, rounded up. */
static int patience_ms(struct server *server) {
  uint64_t next, now = now_ns();
  check(tickless_local_next_event(server->timers, &next));
  if (next == TICKLESS_NEVER) return -1;
  if (next <= now) return 0;
  uint64_t ms = (next - now + MS - 1) / MS;
  return ms > 60000 ? 60000 : (int)ms;
}

static void turn(struct server *server) {
  struct epoll_event events[64];
  int count = epoll_wait(server->epoll, events, 64, patience_ms(server));
  if (count < 0 && errno != EINTR) must(count, "epoll_wait");
  server->now = now_ns();
  /* Handle the events before the timers: a connection that received data while the loop was delayed
   * is not idle. */
  for (int i = 0; i < count; i++) {
    struct connection *connection = events[i].data.ptr;
    if (connection) {
      echo(server, connection);
    } else {
      accept_all(server);
    }
  }
  check(tickless_local_advance(server->timers, server->now, 0, idle_timeout, server, NULL));
}

static int listen_on(uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
  must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
  must(bind(fd, (struct sockaddr *)&address, sizeof address), "bind");
  must(listen(fd, 1024), "listen");
  return fd;
}

static void set_up(struct server *server, uint16_t port, uint64_t idle_ns) {
  check(TICKLESS_ABI_CHECK());
  *server = (struct server){.idle_ns = idle_ns, .listener = listen_on(port)};
  check(tickless_local_create(0, TICKLESS_PUSH_OUT_LAZY, &server->timers));
  server->epoll = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  must(epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->listener, &event), "epoll_ctl");
}

static void tear_down(struct server *server) {
  check(tickless_local_destroy(server->timers));
  close(server->epoll);
  close(server->listener);
}

/* The self-test: clients that send for longer than the idle timeout, then stop. */

enum { CLIENTS = 20, TEST_IDLE_MS = 500, MESSAGES = 15, PAUSE_MS = 50 };

static uint16_t test_port;
static atomic_uint ended;

static void fail(const char *what) {
  fprintf(stderr, "self-test: %s\n", what);
  exit(1);
}

static void *client(void *unused) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(test_port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
  must(connect(fd, (struct sockaddr *)&address, sizeof address), "connect");
  uint64_t said = 0;
  char answer[16];
  for (int i = 0; i < MESSAGES; i++) {
    nanosleep(&(struct timespec){0, PAUSE_MS * MS}, NULL);
    said = now_ns();
    if (send(fd, "hello", 5, MSG_NOSIGNAL) != 5) fail("the server does not listen");
    if (recv(fd, answer, 5, MSG_WAITALL) != 5) fail("closed while it talked");
    if (memcmp(answer, "hello", 5) != 0) fail("not an echo");
  }
  if (recv(fd, answer, 1, 0) != 0) fail("something else than the end");
  if (now_ns() - said < (uint64_t)TEST_IDLE_MS * MS) fail("closed too early");
  close(fd);
  atomic_fetch_add(&ended, 1);
  return unused;
}

static int self_test(void) {
  struct server server;
  pthread_t clients[CLIENTS];
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  set_up(&server, 0, (uint64_t)TEST_IDLE_MS * MS);
  must(getsockname(server.listener, (struct sockaddr *)&address, &size), "getsockname");
  test_port = ntohs(address.sin_port);
  for (int i = 0; i < CLIENTS; i++) {
    if (pthread_create(&clients[i], NULL, client, NULL) != 0) fail("no thread");
  }
  while (server.closed_idle + server.closed_by_peer < CLIENTS) turn(&server);
  for (int i = 0; i < CLIENTS; i++) pthread_join(clients[i], NULL);
  printf("%u clients echoed and idled out\n", server.closed_idle);
  if (server.closed_idle != CLIENTS || server.open != 0) fail("wrong count");
  tear_down(&server);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--self-test") == 0) return self_test();
  long port = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
  long idle_ms = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
  if (port < 1 || port > 65535 || idle_ms < 1 || idle_ms > 1000000000) {
    fprintf(stderr, "usage: %s PORT IDLE_MS | --self-test\n", argv[0]);
    return 2;
  }
  struct server server;
  set_up(&server, (uint16_t)port, (uint64_t)idle_ms * MS);
  for (;;) turn(&server);
}
