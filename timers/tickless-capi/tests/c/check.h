/* Shared by the C tests: checks that report where they failed, and waiting for a condition. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tickless.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS 1000000LL
#define SECOND (1000 * MS)

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition,  \
              tickless_error_text());                                                          \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* Checks that `call` returns `status`. */
#define IS(status, call) check_status(__FILE__, __LINE__, #call, status, call)
#define OK(call) IS(TICKLESS_OK, call)

static inline void check_status(const char *file, int line, const char *call,
                                tickless_status_t expected, tickless_status_t found) {
  if (expected != found) {
    fprintf(stderr, "%s:%d: %s is %s, not %s (last error: %s)\n", file, line, call,
            tickless_status_name((int32_t)found), tickless_status_name((int32_t)expected),
            tickless_error_text());
    exit(1);
  }
  /* Every error has a text. */
  if (expected != TICKLESS_OK && strlen(tickless_error_text()) < 10) {
    fprintf(stderr, "%s:%d: %s left no text\n", file, line, call);
    exit(1);
  }
}

static inline void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

/* Waits until `condition` holds; fails after a minute. */
#define UNTIL(condition)                         \
  do {                                           \
    int tries_ = 0;                              \
    while (!(condition) && tries_ < 60000) {     \
      sleep_ms(1);                               \
      tries_++;                                  \
    }                                            \
    CHECK(condition);                            \
  } while (0)

#endif
