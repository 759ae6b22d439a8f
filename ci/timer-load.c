// A load on the kernel's timers at a fixed rate, for recordings and measurements. Sleeping threads
// use precise timers; connections over loopback use coarse ones: each exchange arms and cancels
// retransmissions, delayed acknowledgements and the readers' timeouts. Two threads share REARMS
// rearms a second of a pending timer, each of which the kernel records as two events.
//
// Absolute times fix the rate, so that a recording, which slows a run down, does not change the
// amount of work (ci/project-perf.sh).
// Build: cc -O2 -pthread ci/timer-load.c; usage: SECONDS [SLEEPERS [CONNECTIONS [REARMS]]]
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD 1000000LL  // The ns between two rounds of a thread.
#define MOST 1000

struct thread {
  pthread_t thread;
  void (*round)(struct thread *);
  int64_t next, rounds;
  int client, server, timer;
};

static struct thread threads[MOST];
static int64_t ends;
static int rearms;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void check(int is_right, const char *what) {
  if (!is_right) perror(what), exit(1);
}

static void *every(void *of) {
  for (struct thread *me = of; me->next < ends; me->next += PERIOD) {
    struct timespec at = {me->next / 1000000000, me->next % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    me->round(me);
    me->rounds++;
  }
  return NULL;
}

static void nothing(struct thread *me) { (void)me; }

static void exchange(struct thread *me) {
  char byte = 1;
  check(write(me->client, &byte, 1) == 1 && read(me->client, &byte, 1) == 1, "a connection");
}

// Answers until the client disconnects.
static void *serve(void *of) {
  struct thread *me = of;
  char byte;
  while (read(me->server, &byte, 1) == 1 && write(me->server, &byte, 1) == 1) continue;
  return NULL;
}

static void rearm(struct thread *me) {
  struct itimerspec deadline = {{0, 0}, {100, 0}};
  for (int i = rearms / 2000; i > 0; i--) timerfd_settime(me->timer, 0, &deadline, NULL);
}

static void connect_both(struct thread *me, int listener) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  // Longer than any exchange takes, so it never expires.
  struct timeval timeout = {5, 0};
  int on = 1;
  getsockname(listener, (struct sockaddr *)&address, &size);
  me->client = socket(AF_INET, SOCK_STREAM, 0);
  check(connect(me->client, (struct sockaddr *)&address, size) == 0, "connect");
  me->server = accept(listener, NULL, NULL);
  for (int i = 0; i < 2; i++) {
    int side = i ? me->server : me->client;
    setsockopt(side, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(side, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  }
}

int main(int count, char **words) {
  int number[] = {1, 8, 4, 0};
  for (int i = 1; i < count && i <= 4; i++) number[i - 1] = atoi(words[i]);
  int seconds = number[0], sleepers = number[1], connections = number[2];
  rearms = number[3];
  int all = sleepers + connections + (rearms ? 2 : 0);
  check(all > 0 && all <= MOST, "the number of threads");
  struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  check(bind(listener, (struct sockaddr *)&loopback, sizeof loopback) == 0, "bind");
  check(listen(listener, MOST) == 0, "listen");
  int64_t begin = now_ns(), rounds = 0;
  ends = begin + seconds * 1000000000LL;
  for (int i = 0; i < all; i++) {
    struct thread *one = &threads[i];
    one->next = begin + PERIOD * i / all;
    one->round = i < sleepers ? nothing : i < sleepers + connections ? exchange : rearm;
    if (one->round == exchange) {
      pthread_t server;
      connect_both(one, listener);
      check(pthread_create(&server, NULL, serve, one) == 0, "a thread");
    } else if (one->round == rearm) {
      one->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    }
    check(pthread_create(&one->thread, NULL, every, one) == 0, "a thread");
  }
  for (int i = 0; i < all; i++) {
    pthread_join(threads[i].thread, NULL);
    rounds += threads[i].rounds;
  }
  printf("%lld rounds of %lld\n", (long long)rounds, all * seconds * (1000000000LL / PERIOD));
}
