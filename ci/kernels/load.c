// Loads for the guests of ci/kernels.sh. Each has a fixed number of operations, so that the same load
// can be compared on two kernels. Built without libraries of the host (-static).
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void set_timer(int timer, int64_t first_ns, int64_t period_ns, int flags) {
  struct itimerspec set = {{period_ns / 1000000000, period_ns % 1000000000},
                           {first_ns / 1000000000, first_ns % 1000000000}};
  timerfd_settime(timer, flags, &set, NULL);
}

// Arms a timer and disarms it again.
static void arm(int times, int64_t ahead_ns) {
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  while (times-- > 0) {
    set_timer(timer, ahead_ns, 0, 0);
    set_timer(timer, 0, 0, 0);
  }
}

// Waits for a periodic timer.
static void periodic(int64_t times, int64_t period_ns) {
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  uint64_t expired;
  set_timer(timer, period_ns, period_ns, 0);
  while (times > 0 && read(timer, &expired, sizeof expired) == sizeof expired) times -= expired;
}

// Arms a timer for a time that has passed.
static void past(int times) {
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  uint64_t expired;
  while (times-- > 0) {
    set_timer(timer, now_ns() - 1000, 0, TFD_TIMER_ABSTIME);
    if (read(timer, &expired, sizeof expired) != sizeof expired) exit(1);
  }
}

// Two processes pass a byte back and forth.
static void pingpong(int rounds, int cpu, int other) {
  int there[2], back[2];
  char byte = 0;
  if (pipe(there) || pipe(back)) exit(1);
  if (fork() == 0) {
    stay_on(other);
    while (rounds-- > 0)
      if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  stay_on(cpu);
  while (rounds-- > 0)
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) exit(1);
  wait(NULL);
}

// Groups in which each sender writes to each receiver in turn, like hackbench.
static void hack(int groups, int side, int messages) {
  char message[100] = {0};
  for (int group = 0; group < groups; group++) {
    int pipes[64][2];
    for (int at = 0; at < side; at++) {
      if (pipe(pipes[at])) exit(1);
      if (fork() == 0) {
        for (int open = 0; open <= at; open++) close(pipes[open][1]);
        while (read(pipes[at][0], message, sizeof message) > 0) {}
        _exit(0);
      }
    }
    for (int at = 0; at < side; at++)
      if (fork() == 0) {
        for (int left = messages; left > 0; left--)
          for (int to = 0; to < side; to++)
            if (write(pipes[to][1], message, sizeof message) < 0) _exit(1);
        _exit(0);
      }
    for (int at = 0; at < side; at++) close(pipes[at][0]), close(pipes[at][1]);
  }
  while (wait(NULL) > 0) {}
}

// Computes in several processes.
static void burn(double seconds, int processes) {
  int64_t end = now_ns() + (int64_t)(seconds * 1e9);
  for (int at = 0; at < processes; at++)
    if (fork() == 0) {
      while (now_ns() < end) {}
      _exit(0);
    }
  while (wait(NULL) > 0) {}
}

int main(int count, char **words) {
  const char *load = count > 1 ? words[1] : "";
  double n[3] = {0};
  for (int at = 2; at < count && at < 5; at++) n[at - 2] = atof(words[at]);
  if (!strcmp(load, "arm")) stay_on(0), arm(n[0], n[1]);
  else if (!strcmp(load, "periodic")) stay_on(0), periodic(n[0], n[1]);
  else if (!strcmp(load, "past")) stay_on(0), past(n[0]);
  else if (!strcmp(load, "pingpong")) pingpong(n[0], n[1], n[2]);
  else if (!strcmp(load, "hack")) hack(n[0], n[1], n[2]);
  else if (!strcmp(load, "burn")) burn(n[0], n[1]);
  else return 2;
  return 0;
}
