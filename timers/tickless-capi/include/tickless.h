/* Generated from the sources of timers/tickless-capi by tools/tickless-tidy/tests/header.rs. */

/**
 * @file
 * Tickless: Linux's timer subsystem for programs.
 *
 * C11 or later, C++11 or later (tickless.hpp: C++17); 64-bit Linux. How to build and link:
 * docs/book/src/c.md.
 *
 * All timers have a callback. They differ in where they live and what drives them:
 * - tickless_timer_t (coarse or precise) and tickless_periodic_t live in the caller's memory. They
 *   belong to a tickless_timers_t, whose threads call the callbacks.
 * - The timers of a tickless_local_t belong to the program's own loop: no threads, no locks. Those
 *   of a tickless_fixed_t are similar, and share one duration for each class.
 * - A tickless_clock_timer_t runs on wall-clock time or boottime, and is allocated.
 *
 * A tickless_timers_t has threads (tickless_timers_start), or the program's own loops drive it
 * (tickless_timers_start_in_loops), or a test advances its clock (tickless_timers_start_virtual).
 * Each of them also supports limiters (permits per period) and throttles (CPU time per period).
 *
 * Units. All times are in nanoseconds. Durations are int64_t, 0 to 292 years; a negative duration
 * is an error. Points in time are uint64_t on the clock of tickless_timers_now (for local timers:
 * on the loop's own clock); sums saturate at TICKLESS_NEVER.
 *
 * Pointers. Each object comes from its init, create, start or join, and is used until its destroy,
 * stop or leave, which ends and frees it. A pointer for a result leads to writable memory; it may be
 * null only where a description states so, and in all cancels. An array has as many elements, and a
 * struct with a size field as many bytes, as the call is told. The library copies keys, labels and
 * options, but not a callback's data, which must stay valid while the callback can run.
 *
 * Errors. Calls return a tickless_status_t; tickless_error_text returns a description. A call that
 * returns an error has changed nothing unless its description states otherwise. No panic reaches
 * the caller, and no call ends the process, except when a C++ exception leaves a callback (see
 * below) and when the system has no memory left. The descriptions of functions leave out the errors
 * of invalid arguments, which all functions return that take such an argument:
 * - TICKLESS_NULL_POINTER for a null pointer, unless the description states what null means;
 * - TICKLESS_NOT_INITIALISED for a pointer that leads to no such object;
 * - TICKLESS_MISALIGNED for misaligned memory of a timer or an array;
 * - TICKLESS_WRONG_THREAD in a thread that does not own the local or fixed timers, loop or worker.
 *
 * Threads. All threads may use all objects concurrently, also in callbacks, with two exceptions.
 * Local and fixed timers, loops and workers belong to one thread at a time. Init, destroy and stop
 * of an object must not run concurrently with any other call on it. Callbacks of one timer never
 * overlap.
 *
 * Blocking. Only these calls wait: tickless_timers_start and _stop, the cancels named _sync and
 * _single_shot, shutdown_sync, destroy, tickless_limiter_acquire and tickless_worker_check. In a
 * callback the cancels, shutdown_sync and destroy return an error instead of a wait that could
 * never end.
 *
 * Never early. A timer is late by at most its slack or the granularity of its wheel level, plus the
 * time that waking a thread takes.
 *
 * Misuse that is detected, and returns an error: null and misaligned pointers; unknown choices;
 * numbers out of range; a timer that was never initialised in zeroed memory, was initialised twice,
 * was destroyed, or was copied to another address; starting a timer that was shut down; waiting for
 * a callback that waits for the caller; stopping timers that are in use; local timers that are used
 * by another thread, or advanced from their own callback.
 *
 * Misuse that cannot be detected, and is undefined behaviour:
 * - freeing, moving or writing the memory of a timer before it is destroyed (a callback may destroy
 *   and free its own timer);
 * - using a timer in one thread while another destroys it, or a tickless_timers_t or
 *   tickless_local_t after it was stopped or destroyed;
 * - memory that was not zeroed before the first init and by chance looks like a timer;
 * - a tickless_fired_t after its callback has returned, or in another thread;
 * - invalid pointers, and a size field that is larger than the memory behind it;
 * - leaving a callback other than by return: longjmp, pthread_exit, cancellation of the thread. (A
 *   C++ exception that leaves a callback ends the process by abort().)
 * - any call from a signal handler, because calls take locks. (Block the signal and use sigwait in
 *   a thread, which may make any call.)
 * - returning from a callback in the child of a fork that the callback made; call exec or _exit;
 * - unloading the library (dlclose) while timers run.
 *
 * Misuse that deadlocks: waiting for a callback while holding a lock that the callback takes.
 */


#ifndef TICKLESS_H
#define TICKLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The version of this header. A new major version can break programs.
 */
#define TICKLESS_VERSION_MAJOR 0

/**
 * A new minor version adds something, and can break programs while the major version is 0.
 */
#define TICKLESS_VERSION_MINOR 1

/**
 * A new patch version neither adds something nor breaks programs.
 */
#define TICKLESS_VERSION_PATCH 0

/**
 * Increases with every change after which programs must be recompiled.
 */
#define TICKLESS_ABI 1

/**
 * `how`: pushing out a coarse timer (arming it for later) only writes to the timer, which moves to
 * its new bucket in the timer wheel when its old bucket comes due.
 */
#define TICKLESS_PUSH_OUT_LAZY 0

/**
 * `how`: pushing out a coarse timer (arming it for later) moves it to its new bucket in the timer
 * wheel at once. Timers with equal deadlines then fire in the order of their arming.
 */
#define TICKLESS_PUSH_OUT_EAGER 1

/**
 * `flags`: always read `CLOCK_MONOTONIC`, even where the CPU's counter is reliable.
 */
#define TICKLESS_SYSTEM_CLOCK 1

/**
 * `flags`: keep each driver thread on its base's CPU.
 */
#define TICKLESS_PIN_DRIVERS 2

/**
 * `flags`: callbacks of coarse timers, and of precise timers with `TICKLESS_DEFERRED`, run in an
 * expiry thread of their base, and are therefore allowed to take long. Otherwise all callbacks run
 * in the driver threads.
 */
#define TICKLESS_EXPIRY_THREADS 4

/**
 * Later than every deadline: a timer that is armed for this time never fires.
 */
#define TICKLESS_NEVER UINT64_MAX

/**
 * `base`: selects the sum over all bases.
 */
#define TICKLESS_ALL_BASES UINT32_MAX

/**
 * `kind`: a timeout, on a timer wheel. Never early; late by at most 13 % of its duration plus a
 * tick. Arming, pushing out and cancelling take some nanoseconds regardless of how many timers are
 * pending.
 */
#define TICKLESS_COARSE 0

/**
 * `kind`: a high-resolution timer, in a sorted queue. Never early; late by at most its slack and
 * the time that waking a thread takes.
 */
#define TICKLESS_PRECISE 1

/**
 * `kind`, coarse only, with `|`: fires with the first event of its base after its deadline, and
 * never causes a wakeup.
 */
#define TICKLESS_DEFERRABLE 256

/**
 * `kind`, precise only, with `|`: the callback runs in the expiry thread of its base, if the base
 * has one (see `TICKLESS_EXPIRY_THREADS`).
 */
#define TICKLESS_DEFERRED 512

/**
 * `kind`, with `|`: the timer stays on the base whose number is in the upper 16 bits. Use
 * `TICKLESS_PIN(n)`.
 */
#define TICKLESS_PINNED 1024

/**
 * `missed`: missed periods are skipped and counted. The phase stays.
 */
#define TICKLESS_SKIP 0

/**
 * `missed`: the callback runs once for each missed period, one run directly after another. The
 * phase stays.
 */
#define TICKLESS_BURST 1

/**
 * `missed`: the next expiry is a full period after the time at which the timer fired. The phase
 * moves.
 */
#define TICKLESS_DELAY 2

/**
 * `phase`: none; the first expiry is one period after the start.
 */
#define TICKLESS_PHASE_NONE 0

/**
 * `phase`: expiries at multiples of the period on the clock, so that all such timers share
 * wakeups.
 */
#define TICKLESS_PHASE_ALIGNED 1

/**
 * `phase`: expiries as far as possible from those of other timers with the same period.
 */
#define TICKLESS_PHASE_SPREAD 2

/**
 * `phase`: random; `phase_value` is the seed.
 */
#define TICKLESS_PHASE_RANDOM 3

/**
 * `phase`: expiries `phase_value` nanoseconds after the multiples of the period. `phase_value`
 * must be less than the period.
 */
#define TICKLESS_PHASE_FIXED 4

/**
 * `clock`: the clock of all other timers. It is never set, and does not advance while the system
 * is suspended.
 */
#define TICKLESS_CLOCK_MONOTONIC 0

/**
 * `clock`: the time since boot. It is never set, and advances while the system is suspended.
 */
#define TICKLESS_CLOCK_BOOTTIME 1

/**
 * `clock`: wall-clock time, in nanoseconds since 1970. It can be set forwards or backwards, and
 * advances while the system is suspended.
 */
#define TICKLESS_CLOCK_REALTIME 2

/**
 * The result of a call. Every value but `TICKLESS_OK` is an error, and after an error nothing has
 * changed unless the value's description states otherwise; `tickless_error_text` returns a
 * sentence about the cause and the remedy.
 */
typedef enum tickless_status_t {
  /**
   * The call succeeded.
   */
  TICKLESS_OK = 0,
  /**
   * A pointer that must not be null is null.
   */
  TICKLESS_NULL_POINTER = 1,
  /**
   * A pointer to storage is not aligned as its type requires.
   */
  TICKLESS_MISALIGNED = 2,
  /**
   * The size of a struct, a flag, or a choice is unknown to this version of the library.
   */
  TICKLESS_UNSUPPORTED = 3,
  /**
   * A number is outside its range, for example a negative duration.
   */
  TICKLESS_OUT_OF_RANGE = 4,
  /**
   * The storage was never initialised, has been destroyed, or was copied from elsewhere.
   */
  TICKLESS_NOT_INITIALISED = 5,
  /**
   * The storage already holds a timer. Destroy it first.
   */
  TICKLESS_ALREADY_INITIALISED = 6,
  /**
   * The object is still in use: a set of timers has timers, or local timers are being advanced.
   */
  TICKLESS_BUSY = 7,
  /**
   * The timer has been shut down, or this process is a forked child and the timer belongs to its
   * parent.
   */
  TICKLESS_SHUT = 8,
  /**
   * The set of timers has no base with this number.
   */
  TICKLESS_NO_SUCH_BASE = 9,
  /**
   * The call would wait for a callback that waits for the caller. If a cancel returns this, it
   * has cancelled the timer, but the timer's callback is perhaps still running.
   */
  TICKLESS_WOULD_DEADLOCK = 10,
  /**
   * `cancel_single_shot` found that the timer had been armed again while its callback ran. The
   * timer has been cancelled, and its callback has returned.
   */
  TICKLESS_NOT_SINGLE_SHOT = 11,
  /**
   * A thread used an object that belongs to another thread.
   */
  TICKLESS_WRONG_THREAD = 12,
  /**
   * The timer of this key has been removed, or the key belongs to another table.
   */
  TICKLESS_NO_SUCH_TIMER = 13,
  /**
   * A table has reached its maximum number of entries.
   */
  TICKLESS_FULL = 14,
  /**
   * The operating system refused to create a thread.
   */
  TICKLESS_NO_THREAD = 15,
  /**
   * The program was compiled with the header of another version.
   */
  TICKLESS_ABI_MISMATCH = 16,
  /**
   * A defect in the library: it panicked, and the panic was caught before it reached C. The
   * object that the call used is in an unknown state.
   */
  TICKLESS_INTERNAL = 17,
  /**
   * The operating system refused to create a descriptor for a loop.
   */
  TICKLESS_NO_DESCRIPTOR = 18,
  /**
   * Too few permits are left in this period, or other threads wait for them.
   */
  TICKLESS_EMPTY = 19,
  /**
   * The timeout of the call expired.
   */
  TICKLESS_TIMED_OUT = 20,
} tickless_status_t;

/**
 * The state in which a cancel found a timer.
 */
typedef enum tickless_cancel_t {
  /**
   * The timer was neither pending nor running.
   */
  TICKLESS_CANCEL_IDLE = 0,
  /**
   * The timer was pending; that arming will not fire.
   */
  TICKLESS_CANCEL_PENDING = 1,
  /**
   * The timer's callback was running.
   */
  TICKLESS_CANCEL_RUNNING = 2,
} tickless_cancel_t;

/**
 * A clock timer that fires, as its callback sees it. Opaque; valid until the callback returns, in
 * the thread that runs it.
 */
typedef struct tickless_clock_fired_t tickless_clock_fired_t;

/**
 * A timer whose deadlines are on a clock of the program's choice; created by
 * `tickless_clock_timer_create`. Opaque.
 *
 * Never early on its own clock. Setting wall-clock time does not change absolute deadlines on it:
 * a deadline that has now passed fires at once, and if the clock was set back the timer fires when
 * the clock reaches the deadline again. Setting the clock does not affect durations: ten seconds
 * remain ten seconds. On boottime, deadlines and durations include suspends.
 *
 * The first such timer of a set starts a thread that waits for wall-clock time to be set. If the
 * program's own loop drives the set, no thread is started, and the timers check their clock once a
 * second.
 */
typedef struct tickless_clock_timer_t tickless_clock_timer_t;

/**
 * The expiry of a timer, as the timer's callback sees it. Opaque; valid until the callback
 * returns, in the thread that runs it. The expiry stays valid after the callback has destroyed its
 * timer, but requests are ignored then.
 */
typedef struct tickless_fired_t tickless_fired_t;

/**
 * Timeouts of one thread. All timeouts of a class have one duration, which can change while they
 * are pending. Opaque. Restarting a pending timeout is a single store.
 *
 * For example, a server makes a class of the idle timeouts of all connections of a listener. Under
 * overload it halves their duration with one call, and the connections that have been idle longest
 * come due at once.
 *
 * Never early; late by at most a sixteenth of the class's duration, or of its original duration if
 * that is longer. Only the owner thread may use it: the thread that created it, or the last one
 * that adopted it, as with `tickless_local_t`.
 */
typedef struct tickless_fixed_t tickless_fixed_t;

/**
 * A limiter for each key, for example each address or user; created by `tickless_keyed_create`.
 * Opaque. All threads may use it.
 */
typedef struct tickless_keyed_t tickless_keyed_t;

/**
 * A fixed number of permits in every period, granted in the order of the requests; created by
 * `tickless_limiter_create`. Opaque. All threads may use it.
 */
typedef struct tickless_limiter_t tickless_limiter_t;

/**
 * Timers of one thread. Opaque. The program's loop asks when the next timer is due, waits that
 * long for its own events, and passes the current time to `tickless_local_advance`, which calls a
 * callback for each timer that fires.
 *
 * Only the owner thread may use it: the thread that created it, or the last one that adopted it.
 * Calls from other threads return `TICKLESS_WRONG_THREAD`.
 */
typedef struct tickless_local_t tickless_local_t;

/**
 * Drives one base of a set of timers from the program's own loop. Opaque.
 *
 * The program's loop polls the descriptor for reading, with its own descriptors, and calls
 * `tickless_loop_run` when it is readable. Callbacks run inside that call, on the loop's thread,
 * one at a time. All threads may arm and cancel timers; a timer fires only when the loop runs.
 *
 * Only the owner thread may use it: the thread that created it, or the last one that adopted it.
 */
typedef struct tickless_loop_t tickless_loop_t;

/**
 * A group of threads that share a fixed amount of CPU time in every period; created by
 * `tickless_throttle_create`. Opaque. All threads may use it.
 */
typedef struct tickless_throttle_t tickless_throttle_t;

/**
 * A set of timers, with a base and a driver thread for each CPU. Opaque.
 *
 * All threads may use it. In the child of a fork its timers count as shut down: none fires, arming
 * returns `TICKLESS_SHUT`, a cancel reports an idle timer, and destroying and stopping do not
 * wait. A child can start timers of its own. A callback that forks must not return in the child.
 */
typedef struct tickless_timers_t tickless_timers_t;

/**
 * One thread's membership in a throttle; created by `tickless_throttle_join`. Opaque. Only that
 * thread may use it.
 */
typedef struct tickless_worker_t tickless_worker_t;

/**
 * How to start timers. Set the whole struct to zero, then `size` to `sizeof(tickless_options_t)`;
 * zero selects the default of each field.
 */
typedef struct tickless_options_t {
  /**
   * `sizeof(tickless_options_t)`, so that a later version can add fields.
   */
  size_t size;
  /**
   * The tick of coarse timers in nanoseconds, 1,000 (1 us) to 1,000,000,000 (1 s). Default:
   * 1 ms.
   */
  uint64_t tick_ns;
  /**
   * How long an expiry thread may spend in one callback before another thread fires the other
   * timers of its base, in nanoseconds. Default: 100 ms.
   */
  uint64_t patience_ns;
  /**
   * The number of bases, each with a driver thread; at most 65,535. Default: one for each CPU
   * that the process may use.
   */
  uint32_t bases;
  /**
   * `TICKLESS_SYSTEM_CLOCK`, `TICKLESS_PIN_DRIVERS`, `TICKLESS_EXPIRY_THREADS`, or several with
   * `|`.
   */
  uint32_t flags;
} tickless_options_t;

/**
 * What `tickless_timers_stats` reports: the counters of one base, or the sum over all bases. Set
 * `size` before the call.
 */
typedef struct tickless_stats_t {
  /**
   * `sizeof(tickless_stats_t)`.
   */
  size_t size;
  /**
   * The number of bases that were counted. 0 in the child of a fork: the child cannot take their
   * locks, because a thread of the parent perhaps held one at the fork.
   */
  uint64_t bases;
  /**
   * Pending coarse timers.
   */
  uint64_t pending_coarse;
  /**
   * Pending precise and periodic timers.
   */
  uint64_t pending_precise;
  /**
   * The earliest deadline; `TICKLESS_NEVER` if no timer is pending.
   */
  uint64_t earliest_ns;
  /**
   * Armings of idle timers.
   */
  uint64_t armed;
  /**
   * Armings of pending timers. Timeouts that were pushed out without a lock are not counted.
   */
  uint64_t rearmed;
  /**
   * Armings that were cancelled.
   */
  uint64_t cancelled;
  /**
   * Armings that fired.
   */
  uint64_t fired;
  /**
   * Timers that moved here from another base.
   */
  uint64_t migrated;
  /**
   * Pushed-out timeouts that moved to their new bucket when their old one came due.
   */
  uint64_t relocated;
  /**
   * How often the driver was programmed.
   */
  uint64_t device_writes;
  /**
   * How often the driver woke and found no timer due.
   */
  uint64_t device_spurious;
  /**
   * System calls that woke the driver for an earlier deadline.
   */
  uint64_t wake_calls;
  /**
   * System calls in which the driver slept.
   */
  uint64_t sleeps;
  /**
   * System calls that woke the expiry thread.
   */
  uint64_t expirer_calls;
} tickless_stats_t;

/**
 * Memory for one timer: on the stack, in a struct, or from `malloc`. Opaque.
 *
 * Set it to zero before its first `tickless_timer_init`, otherwise some misuse is not detected.
 * From init to destroy it must neither move nor be written. It has 128 bytes; align timers that
 * are used often to 64 bytes.
 */
typedef struct tickless_timer_t {
  /**
   * Private to the library.
   */
  uint64_t opaque[16];
} tickless_timer_t;

/**
 * The callback of a timer, called with the `data` that the timer was initialised with.
 *
 * A thread of the library calls it, one callback at a time for each base (a part of the timers
 * with a thread of its own). A callback should be short: while it runs, the other timers of its
 * base wait, but not those of other bases. It must return: leaving it by `longjmp`, `pthread_exit`
 * or thread cancellation is undefined. A C++ exception that leaves it aborts the process.
 */
typedef void (*tickless_callback_t)(struct tickless_fired_t *fired, void *data);

/**
 * Memory for one periodic timer, under the rules of `tickless_timer_t`; 320 bytes. Opaque.
 */
typedef struct tickless_periodic_t {
  /**
   * Private to the library.
   */
  uint64_t opaque[40];
} tickless_periodic_t;

/**
 * How a periodic timer behaves. Set the whole struct to zero, then `size` to
 * `sizeof(tickless_periodic_options_t)`; zero selects the default of each field.
 */
typedef struct tickless_periodic_options_t {
  /**
   * `sizeof(tickless_periodic_options_t)`.
   */
  size_t size;
  /**
   * How late each expiry is allowed to be, in nanoseconds, to share a wakeup with other timers.
   */
  uint64_t slack_ns;
  /**
   * Used with `TICKLESS_PHASE_RANDOM` and `TICKLESS_PHASE_FIXED`; otherwise zero.
   */
  uint64_t phase_value;
  /**
   * One of `TICKLESS_SKIP`, `TICKLESS_BURST`, `TICKLESS_DELAY`.
   */
  uint32_t missed;
  /**
   * One of `TICKLESS_PHASE_...`.
   */
  uint32_t phase;
} tickless_periodic_options_t;

/**
 * The callback of a clock timer, under the rules of `tickless_callback_t`.
 */
typedef void (*tickless_clock_callback_t)(struct tickless_clock_fired_t *fired, void *data);

/**
 * The quota of every period: permits for a limiter, nanoseconds of CPU time for a throttle. Set
 * the whole struct to zero, then `size` to `sizeof(tickless_quota_t)`.
 */
typedef struct tickless_quota_t {
  /**
   * `sizeof(tickless_quota_t)`.
   */
  size_t size;
  /**
   * The quota of every period; at least 1. For a throttle at most one period for each CPU.
   */
  uint64_t quota;
  /**
   * The period, in nanoseconds; at least 1.
   */
  uint64_t period_ns;
  /**
   * How much unused quota is kept and can be used later, in addition to the quota of a period.
   */
  uint64_t extra;
  /**
   * How late a refill is allowed to be, in nanoseconds, to share a wakeup. Default: a thousandth
   * of the period, and up to a tenth if hundreds of limiters or throttles have this period.
   */
  uint64_t slack_ns;
  /**
   * Used with `TICKLESS_PHASE_RANDOM` and `TICKLESS_PHASE_FIXED`; otherwise zero.
   */
  uint64_t phase_value;
  /**
   * After a refill, waiting threads are released `release_batch` at a time, `release_gap_ns`
   * apart. Default: values that suit the period.
   */
  uint64_t release_gap_ns;
  /**
   * See `release_gap_ns`; `UINT32_MAX` releases all at once.
   */
  uint32_t release_batch;
  /**
   * When in its period the quota is refilled: one of `TICKLESS_PHASE_...`. Default: spread.
   */
  uint32_t phase;
  /**
   * The most threads that a limiter lets wait: further calls of `tickless_limiter_acquire` that
   * would have to wait return `TICKLESS_EMPTY`. Default: any number. Zero for a throttle.
   */
  uint64_t waiting_max;
} tickless_quota_t;

/**
 * Counters of a limiter or a throttle, in permits or in nanoseconds of CPU time. Set `size` before
 * the call.
 */
typedef struct tickless_quota_counts_t {
  /**
   * `sizeof(tickless_quota_counts_t)`.
   */
  size_t size;
  /**
   * The quota that has been used.
   */
  uint64_t used;
  /**
   * The quota that refills have added.
   */
  uint64_t refilled;
  /**
   * The quota that refills have discarded because more was left than is kept for later.
   */
  uint64_t expired;
  /**
   * The number of refills.
   */
  uint64_t refills;
  /**
   * How often a caller had to wait.
   */
  uint64_t throttled;
  /**
   * The total time that callers waited, in nanoseconds.
   */
  uint64_t waited_ns;
  /**
   * The number of callers that wait now.
   */
  uint64_t waiting;
} tickless_quota_counts_t;

/**
 * Identifies a timer of one `tickless_local_t`. Calls with the key of a removed timer return
 * `TICKLESS_NO_SUCH_TIMER`. A key of zeros never identifies a timer.
 */
typedef struct tickless_key_t {
  /**
   * Opaque.
   */
  uint64_t bits;
} tickless_key_t;

/**
 * Called by `tickless_local_advance` for each timer that fires; the timer is already idle. The
 * callback may use the timers in every way except to advance or destroy them. It must return; a
 * C++ exception that leaves it aborts the process. `context` is the argument of the advance,
 * `data` that of the timer's insertion.
 */
typedef void (*tickless_local_callback_t)(struct tickless_local_t *local,
                                          struct tickless_key_t key,
                                          void *data,
                                          void *context);

/**
 * Called by `tickless_fixed_advance` for each timer that fires, under the rules of
 * `tickless_local_callback_t`.
 */
typedef void (*tickless_fixed_callback_t)(struct tickless_fixed_t *fixed,
                                          struct tickless_key_t key,
                                          void *data,
                                          void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of the library, for example "0.1.0", which can differ from the header's.
 * Never null.
 */
const char *tickless_version(void);

/**
 * Checks that this library matches the header that the program was compiled with. Call it once,
 * before any other function, through the macro `TICKLESS_ABI_CHECK()`. Errors:
 * `TICKLESS_ABI_MISMATCH`, after which no other function may be called.
 */
enum tickless_status_t tickless_abi_check(uint32_t abi, size_t timer_size, size_t periodic_size);

/**
 * Returns a sentence about the last error of the calling thread, in English and UTF-8: its cause
 * and what to do. Returns an empty text if no call has failed. The library owns the text, which is
 * valid until this thread's next call that fails. Never null.
 */
const char *tickless_error_text(void);

/**
 * Returns the name of a status, for example "TICKLESS_BUSY", or "unknown" for any other number.
 * Never null.
 */
const char *tickless_status_name(int32_t status);

/**
 * Starts a set of timers. `options` may be null for the defaults; `timers` receives the set.
 * Blocks for about half a millisecond to calibrate the clock. The driver threads inherit the
 * caller's signal mask.
 *
 * Errors: `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`, `TICKLESS_NO_THREAD`.
 */
enum tickless_status_t tickless_timers_start(const struct tickless_options_t *options,
                                             struct tickless_timers_t **timers);

/**
 * Stops a set of timers and frees it; does nothing if the pointer is null. Waits until the driver
 * threads have ended.
 *
 * Errors: `TICKLESS_BUSY`, returned after 100 ms, if one of its timers is still initialised, or
 * one of its limiters or throttles still exists: destroy those first. `TICKLESS_WOULD_DEADLOCK`
 * inside a callback of one of its timers. After an error the set keeps running. In the child of a
 * fork it always succeeds, because timers that another thread of the parent owns are never
 * destroyed there.
 */
enum tickless_status_t tickless_timers_stop(struct tickless_timers_t *timers);

/**
 * Reads the current time, in nanoseconds, on the clock that deadlines refer to. It never goes
 * back, is close to `CLOCK_MONOTONIC`, and does not advance while the system is suspended. Costs
 * about 11 ns where the CPU's counter is reliable; no lock, no system call.
 */
enum tickless_status_t tickless_timers_now(const struct tickless_timers_t *timers,
                                           uint64_t *now_ns);

/**
 * Reads the counters of one base, or of all with `TICKLESS_ALL_BASES`. Takes the lock of each base
 * once, and allocates.
 *
 * Errors: `TICKLESS_NO_SUCH_BASE`, `TICKLESS_UNSUPPORTED`.
 */
enum tickless_status_t tickless_timers_stats(const struct tickless_timers_t *timers,
                                             uint32_t base,
                                             struct tickless_stats_t *stats);

/**
 * Reads the details of an expiry: the deadline that the timer was armed with, when it was found to
 * be due (never before the deadline), on which base, and for a periodic timer how many expiries
 * were missed (with `TICKLESS_BURST`: how many are still to be made up for). Pass null for results
 * that are not needed. Reads no clock.
 */
enum tickless_status_t tickless_fired_info(struct tickless_fired_t *fired,
                                           uint64_t *deadline_ns,
                                           uint64_t *found_ns,
                                           uint32_t *base,
                                           uint64_t *overruns);

/**
 * Reads the current time, in nanoseconds, from the clock.
 */
enum tickless_status_t tickless_fired_now(struct tickless_fired_t *fired, uint64_t *now_ns);

/**
 * Requests that the timer be armed again, `after_ns` from now, when the callback has returned.
 * Cheaper than starting the timer by its handle. If another thread arms the timer while the
 * callback runs, that arming has precedence. The last of several requests counts. Reads the clock.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE`.
 */
enum tickless_status_t tickless_fired_restart(struct tickless_fired_t *fired, int64_t after_ns);

/**
 * Requests that the timer be armed again for a window between two points in time. A coarse timer
 * uses the first as its deadline.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE` if the window ends before it begins.
 */
enum tickless_status_t tickless_fired_restart_range(struct tickless_fired_t *fired,
                                                    uint64_t soft_ns,
                                                    uint64_t hard_ns);

/**
 * Requests that the timer be armed again a whole number of periods after its own deadline, so that
 * it does not drift: at the first such time that has not passed. `overruns`, which may be null,
 * receives how many expiries were missed, 0 if none. Reads the clock. Periodic timers do this by
 * themselves.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE` if the period is not positive.
 */
enum tickless_status_t tickless_fired_forward(struct tickless_fired_t *fired,
                                              int64_t period_ns,
                                              uint64_t *overruns);

/**
 * Withdraws the callback's request, so that the timer stays idle. Stops a periodic timer.
 */
enum tickless_status_t tickless_fired_stop(struct tickless_fired_t *fired);

/**
 * Initialises a timer in its caller's memory, without arming it. Allocates nothing.
 *
 * `kind` is `TICKLESS_COARSE` or `TICKLESS_PRECISE`, with `|` also `TICKLESS_DEFERRABLE`,
 * `TICKLESS_DEFERRED` or `TICKLESS_PINNED`. A thread of the library calls `callback` with `data`.
 *
 * Errors: `TICKLESS_ALREADY_INITIALISED`, `TICKLESS_UNSUPPORTED`, `TICKLESS_NO_SUCH_BASE`.
 */
enum tickless_status_t tickless_timer_init(struct tickless_timer_t *timer,
                                           const struct tickless_timers_t *timers,
                                           uint32_t kind,
                                           tickless_callback_t callback,
                                           void *data);

/**
 * Arms a timer to fire `after_ns` from now. A pending timer is rearmed, earlier or later.
 * Allocates nothing; makes a system call only if the new deadline is earlier than the one that a
 * sleeping driver waits for. Durations are at most 292 years; deadlines beyond the end of the
 * clock never come.
 *
 * If another thread cancels the timer and waits for its callback (`tickless_timer_cancel_sync`),
 * that cancel also cancels this arming. The call still succeeds.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_SHUT`.
 */
enum tickless_status_t tickless_timer_start(const struct tickless_timer_t *timer, int64_t after_ns);

/**
 * Arms a timer as `tickless_timer_start` does, but counts `after_ns` from `now_ns`, which the
 * caller has just read with `tickless_timers_now`. A server that handles a batch of events reads
 * the clock once. If `now_ns` is not the current time, the timer fires earlier or later by that
 * much.
 *
 * Errors: those of `tickless_timer_start`.
 */
enum tickless_status_t tickless_timer_start_from(const struct tickless_timer_t *timer,
                                                 uint64_t now_ns,
                                                 int64_t after_ns);

/**
 * Arms a timer as `tickless_timer_start` does, but allows it to be late by `slack_ns` so that it
 * can share a wakeup with others. Precise timers only.
 *
 * Errors: those of `tickless_timer_start`; `TICKLESS_UNSUPPORTED` for a coarse one.
 */
enum tickless_status_t tickless_timer_start_slack(const struct tickless_timer_t *timer,
                                                  int64_t after_ns,
                                                  int64_t slack_ns);

/**
 * Arms or rearms a timer for a point in time on the timers' clock. A point that has passed fires
 * at once; `TICKLESS_NEVER` never comes.
 *
 * Errors: `TICKLESS_SHUT`.
 */
enum tickless_status_t tickless_timer_start_at(const struct tickless_timer_t *timer,
                                               uint64_t deadline_ns);

/**
 * Arms or rearms a timer to fire within a window: not before `soft_ns`, from then on with any
 * event of its base, and at `hard_ns` with an event of its own. Precise timers only.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE` if the window ends before it begins, `TICKLESS_SHUT`,
 * `TICKLESS_UNSUPPORTED` for a coarse one.
 */
enum tickless_status_t tickless_timer_start_range(const struct tickless_timer_t *timer,
                                                  uint64_t soft_ns,
                                                  uint64_t hard_ns);

/**
 * Arms an idle timer. A pending timer only becomes earlier, never later. Coarse timers only.
 *
 * Errors: those of `tickless_timer_start`; `TICKLESS_UNSUPPORTED` for a precise one.
 */
enum tickless_status_t tickless_timer_reduce(const struct tickless_timer_t *timer,
                                             int64_t after_ns);

/**
 * Cancels a timer unless its callback is running: then it reports `TICKLESS_CANCEL_RUNNING` and
 * changes nothing. Never waits; takes no lock if the timer is idle.
 */
enum tickless_status_t tickless_timer_try_cancel(const struct tickless_timer_t *timer,
                                                 enum tickless_cancel_t *found);

/**
 * Cancels a timer without waiting for its callback; takes no lock if the timer is idle. After
 * `TICKLESS_CANCEL_RUNNING` the callback is perhaps still running, and can still request a
 * restart.
 */
enum tickless_status_t tickless_timer_cancel(const struct tickless_timer_t *timer,
                                             enum tickless_cancel_t *found);

/**
 * Cancels a timer and waits until no thread runs its callback. When the call has returned, the
 * caller sees what the callback wrote, and is allowed to free the callback's data. `found` reports
 * the state at the beginning of the call. The call spins for some microseconds, then sleeps. It
 * also cancels armings that happen while it waits, including the callback's own. Do not hold a
 * lock that the callback takes: this deadlock is not detected.
 *
 * Allocates nothing unless it waits. The first calls that wait allocate some hundred bytes for a
 * table of waits, which stay allocated.
 *
 * Errors: `TICKLESS_WOULD_DEADLOCK` in the timer's own callback, or in one that its callback waits
 * for: the timer has been cancelled, `found` reports its state, and its callback is perhaps
 * running.
 */
enum tickless_status_t tickless_timer_cancel_sync(const struct tickless_timer_t *timer,
                                                  enum tickless_cancel_t *found);

/**
 * A `tickless_timer_cancel_sync` that is slightly cheaper while callbacks of other timers run, for
 * a timer that is never armed again while its callback runs, neither by another thread nor by the
 * callback itself.
 *
 * Errors: those of `tickless_timer_cancel_sync`; `TICKLESS_NOT_SINGLE_SHOT` if the timer was armed
 * nevertheless: it has been cancelled, and its callback has returned.
 */
enum tickless_status_t tickless_timer_cancel_single_shot(const struct tickless_timer_t *timer,
                                                         enum tickless_cancel_t *found);

/**
 * Cancels a timer permanently, and waits as `tickless_timer_cancel_sync` does. Every later arming
 * by any thread returns `TICKLESS_SHUT`. The storage stays initialised and must still be
 * destroyed.
 *
 * Errors: those of `tickless_timer_cancel_sync`; the timer is shut down in any case.
 */
enum tickless_status_t tickless_timer_shutdown_sync(const struct tickless_timer_t *timer,
                                                    enum tickless_cancel_t *found);

/**
 * Reports whether the timer is armed. The answer can be out of date at once, because other threads
 * can arm or cancel the timer at any time.
 */
enum tickless_status_t tickless_timer_is_pending(const struct tickless_timer_t *timer,
                                                 bool *is_pending);

/**
 * Reports whether the timer is armed or its callback is running. Never reports false while the
 * timer is armed or its callback runs; a true result can be out of date.
 */
enum tickless_status_t tickless_timer_is_active(const struct tickless_timer_t *timer,
                                                bool *is_active);

/**
 * Destroys a timer: shuts it down, waits for its callback as `tickless_timer_cancel_sync` does,
 * and releases the memory, which may then be freed or initialised again.
 *
 * In the timer's own callback the call succeeds without waiting, and the library does not access
 * the memory afterwards, so a callback is allowed to destroy its timer and free it. No other
 * thread is allowed to use the timer at that moment.
 *
 * Errors: `TICKLESS_WOULD_DEADLOCK` in another timer's callback that this timer's callback waits
 * for: the timer is shut down, but its memory is still in use; destroy it again later.
 */
enum tickless_status_t tickless_timer_destroy(struct tickless_timer_t *timer);

/**
 * Initialises a periodic timer in its caller's memory, without starting it. Allocates nothing;
 * starting a timer allocates only to choose a phase.
 *
 * The timer does not drift: each expiry is computed from the previous deadline, not from the time
 * at which a callback ran. `options` may be null for the defaults. A thread of the library calls
 * `callback` with `data` at each expiry; in the callback, `tickless_fired_info` reports how many
 * expiries were missed, and `tickless_fired_stop` stops the timer.
 *
 * Errors: `TICKLESS_ALREADY_INITIALISED`, `TICKLESS_UNSUPPORTED`.
 */
enum tickless_status_t tickless_periodic_init(struct tickless_periodic_t *timer,
                                              const struct tickless_timers_t *timers,
                                              const struct tickless_periodic_options_t *options,
                                              tickless_callback_t callback,
                                              void *data);

/**
 * Starts or restarts a periodic timer. The first expiry is one period from now, or where its phase
 * places it; further ones follow every `period_ns`.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE` if the period is not positive, or the phase is not less than the
 * period; `TICKLESS_SHUT` in the child of a fork.
 */
enum tickless_status_t tickless_periodic_start(const struct tickless_periodic_t *timer,
                                               int64_t period_ns);

/**
 * Starts a periodic timer with its first expiry at a point in time. This sets its phase and
 * overrides the phase in its options.
 *
 * Errors: those of `tickless_periodic_start`.
 */
enum tickless_status_t tickless_periodic_start_at(const struct tickless_periodic_t *timer,
                                                  uint64_t first_ns,
                                                  int64_t period_ns);

/**
 * Stops a periodic timer without waiting for its callback. If the callback is running, that run is
 * the last, regardless of what it requests.
 */
enum tickless_status_t tickless_periodic_cancel(const struct tickless_periodic_t *timer,
                                                enum tickless_cancel_t *found);

/**
 * Stops a periodic timer and waits until no thread runs its callback, as
 * `tickless_timer_cancel_sync` does, with its errors.
 */
enum tickless_status_t tickless_periodic_cancel_sync(const struct tickless_periodic_t *timer,
                                                     enum tickless_cancel_t *found);

/**
 * Reports whether the timer has been started and not stopped.
 */
enum tickless_status_t tickless_periodic_is_active(const struct tickless_periodic_t *timer,
                                                   bool *is_active);

/**
 * Reports the timer's phase: how long after the multiples of its period it expires, in
 * nanoseconds; `TICKLESS_NEVER` unless it was started with a phase.
 */
enum tickless_status_t tickless_periodic_phase_offset(const struct tickless_periodic_t *timer,
                                                      uint64_t *place_ns);

/**
 * Destroys a periodic timer, as `tickless_timer_destroy` does, with its errors. A callback may
 * destroy its own timer.
 */
enum tickless_status_t tickless_periodic_destroy(struct tickless_periodic_t *timer);

/**
 * Reads the current time of a clock, in nanoseconds. One system call, except for the monotonic
 * clock.
 *
 * Errors: `TICKLESS_UNSUPPORTED`.
 */
enum tickless_status_t tickless_timers_now_on(const struct tickless_timers_t *timers,
                                              uint32_t clock_number,
                                              uint64_t *now_ns);

/**
 * Creates a timer on one of the clocks `TICKLESS_CLOCK_...`, without arming it. When it fires, a
 * thread of the library calls `callback` with `data`. Allocates.
 *
 * Errors: `TICKLESS_UNSUPPORTED`.
 */
enum tickless_status_t tickless_clock_timer_create(const struct tickless_timers_t *timers,
                                                   uint32_t clock_number,
                                                   tickless_clock_callback_t callback,
                                                   void *data,
                                                   struct tickless_clock_timer_t **timer);

/**
 * Arms or rearms a timer to fire `after_ns` from now. The duration includes suspends on boottime
 * only, and does not depend on wall-clock time being set.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_SHUT`.
 */
enum tickless_status_t tickless_clock_timer_start(const struct tickless_clock_timer_t *timer,
                                                  int64_t after_ns);

/**
 * Arms or rearms a timer for a window on its own clock: not before `soft_ns`, and at `hard_ns`
 * with a wakeup of its own. Pass equal values for a point in time. A window that has passed fires
 * at once.
 *
 * Errors: those of `tickless_clock_timer_start`; `TICKLESS_OUT_OF_RANGE` if the window ends before
 * it begins.
 */
enum tickless_status_t tickless_clock_timer_start_range(const struct tickless_clock_timer_t *timer,
                                                        uint64_t soft_ns,
                                                        uint64_t hard_ns);

/**
 * Cancels a timer without waiting for its callback, as `tickless_timer_cancel` does.
 */
enum tickless_status_t tickless_clock_timer_cancel(const struct tickless_clock_timer_t *timer,
                                                   enum tickless_cancel_t *found);

/**
 * Cancels a timer and waits until no thread runs its callback, as `tickless_timer_cancel_sync`
 * does.
 *
 * Errors: `TICKLESS_WOULD_DEADLOCK` as in `tickless_timer_cancel_sync`.
 */
enum tickless_status_t tickless_clock_timer_cancel_sync(const struct tickless_clock_timer_t *timer,
                                                        enum tickless_cancel_t *found);

/**
 * Reports whether the timer is armed. The answer can be out of date at once, because other threads
 * can arm or cancel the timer at any time.
 */
enum tickless_status_t tickless_clock_timer_is_pending(const struct tickless_clock_timer_t *timer,
                                                       bool *is_pending);

/**
 * Destroys a timer, after its callback has returned; does nothing if the pointer is null. In the
 * timer's own callback it does not wait.
 *
 * Errors: `TICKLESS_WOULD_DEADLOCK` in another timer's callback that this timer's callback waits
 * for: the timer is shut down, but still exists; destroy it again later.
 */
enum tickless_status_t tickless_clock_timer_destroy(struct tickless_clock_timer_t *timer);

/**
 * Reads the deadline that the timer was armed with, and the current time of its own clock. Pass
 * null for results that are not needed. The deadline is on the timer's own clock, except after a
 * realtime timer was started for a duration: then it is on `TICKLESS_CLOCK_MONOTONIC`.
 */
enum tickless_status_t tickless_clock_fired_info(struct tickless_clock_fired_t *fired,
                                                 uint64_t *deadline_ns,
                                                 uint64_t *now_ns);

/**
 * Requests that the timer be armed again, `after_ns` from now, when the callback has returned, as
 * `tickless_fired_restart` does.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE`.
 */
enum tickless_status_t tickless_clock_fired_restart(struct tickless_clock_fired_t *fired,
                                                    int64_t after_ns);

/**
 * Requests that the timer be armed again for a point in time on its own clock.
 */
enum tickless_status_t tickless_clock_fired_restart_at(struct tickless_clock_fired_t *fired,
                                                       uint64_t deadline_ns);

/**
 * Requests that the timer be armed again a whole number of periods of its own clock after its own
 * deadline, at the first such time that has not passed. `overruns`, which may be null, receives
 * how many expiries were missed. If the clock is set back, the timer fires when the clock reaches
 * the next such time.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE` if the period is not positive.
 */
enum tickless_status_t tickless_clock_fired_forward(struct tickless_clock_fired_t *fired,
                                                    int64_t period_ns,
                                                    uint64_t *overruns);

/**
 * Creates a limiter with `quota` permits in every period. Allocates. Destroy it before the timers
 * are stopped.
 *
 * Errors: `TICKLESS_UNSUPPORTED`; `TICKLESS_OUT_OF_RANGE` if a field of the quota is out of range;
 * `TICKLESS_SHUT` in the child of a fork.
 */
enum tickless_status_t tickless_limiter_create(const struct tickless_timers_t *timers,
                                               const struct tickless_quota_t *quota,
                                               struct tickless_limiter_t **made);

/**
 * Acquires permits if they are available. Never waits; while permits are available, it takes no
 * lock and makes no system call.
 *
 * Errors: `TICKLESS_EMPTY` if too few permits are left now, or other threads wait for them;
 * `TICKLESS_OUT_OF_RANGE` for more permits than there can ever be; `TICKLESS_SHUT` once the
 * limiter is closed, and in the child of a fork.
 */
enum tickless_status_t tickless_limiter_try_acquire(const struct tickless_limiter_t *from,
                                                    uint64_t permits);

/**
 * Reports how long it will take until `permits` are available, in nanoseconds; 0 if they are
 * available now. The time includes the permits that other threads wait for now, but not those of
 * later requests. A server that refuses a request sends this time, rounded up to seconds, as
 * `Retry-After`.
 *
 * Errors: those of `tickless_limiter_try_acquire` except `TICKLESS_EMPTY`.
 */
enum tickless_status_t tickless_limiter_retry_after(const struct tickless_limiter_t *from,
                                                    uint64_t permits,
                                                    uint64_t *after_ns);

/**
 * Acquires permits, and blocks the thread until they are available and all earlier requests are
 * served, for at most `timeout_ns`; `INT64_MAX` waits without a limit. Do not call it in a
 * callback: it would delay other timers.
 *
 * Errors: `TICKLESS_TIMED_OUT`; and those of `tickless_limiter_try_acquire`, which are returned
 * without waiting for the timeout. `TICKLESS_EMPTY` means that as many threads wait as the quota's
 * `waiting_max` allows.
 */
enum tickless_status_t tickless_limiter_acquire(const struct tickless_limiter_t *from,
                                                uint64_t permits,
                                                int64_t timeout_ns);

/**
 * Closes a limiter, for a shutdown: every later call returns `TICKLESS_SHUT`, and so do waiting
 * calls, at once. Closing it again does nothing.
 */
enum tickless_status_t tickless_limiter_close(const struct tickless_limiter_t *from);

/**
 * Reads how many permits are available now, and the counters. Either pointer may be null.
 *
 * Errors: `TICKLESS_UNSUPPORTED`.
 */
enum tickless_status_t tickless_limiter_stats(const struct tickless_limiter_t *from,
                                              uint64_t *available,
                                              struct tickless_quota_counts_t *counts);

/**
 * Frees a limiter; does nothing if the pointer is null.
 */
enum tickless_status_t tickless_limiter_destroy(struct tickless_limiter_t *from);

/**
 * Creates a limiter with `quota` permits for each key in every period. A key's period begins when
 * the key is first used. A key takes some 60 bytes in addition to its own bytes until it has all
 * its permits again.
 *
 * Errors: those of `tickless_limiter_create`.
 */
enum tickless_status_t tickless_keyed_create(const struct tickless_timers_t *timers,
                                             const struct tickless_quota_t *quota,
                                             struct tickless_keyed_t **made);

/**
 * Acquires permits of a key if they are available. Never waits for permits. `key` points to
 * `key_size` bytes, which the library copies.
 *
 * Errors: those of `tickless_limiter_try_acquire`.
 */
enum tickless_status_t tickless_keyed_try_acquire(const struct tickless_keyed_t *from,
                                                  const uint8_t *key,
                                                  size_t key_size,
                                                  uint64_t permits);

/**
 * Reports how long it will take until `permits` of a key are available, as
 * `tickless_limiter_retry_after` does.
 *
 * Errors: those of `tickless_limiter_retry_after`.
 */
enum tickless_status_t tickless_keyed_retry_after(const struct tickless_keyed_t *from,
                                                  const uint8_t *key,
                                                  size_t key_size,
                                                  uint64_t permits,
                                                  uint64_t *after_ns);

/**
 * Counts the keys. With `forget_idle`, keys that have all their permits are removed first; adding
 * keys also removes them from time to time.
 */
enum tickless_status_t tickless_keyed_count(const struct tickless_keyed_t *from,
                                            bool forget_idle,
                                            size_t *keys);

/**
 * Frees a keyed limiter; does nothing if the pointer is null.
 */
enum tickless_status_t tickless_keyed_destroy(struct tickless_keyed_t *from);

/**
 * Creates a group of threads that together may use `quota` nanoseconds of CPU time in every
 * period. Allocates. Destroy it before the timers are stopped.
 *
 * Errors: those of `tickless_limiter_create`.
 */
enum tickless_status_t tickless_throttle_create(const struct tickless_timers_t *timers,
                                                const struct tickless_quota_t *quota,
                                                struct tickless_throttle_t **made);

/**
 * Reads the counters. A worker takes quota in slices of at most 5 ms of CPU time, and its use is
 * counted when a slice is used up.
 *
 * Errors: `TICKLESS_UNSUPPORTED`.
 */
enum tickless_status_t tickless_throttle_stats(const struct tickless_throttle_t *group,
                                               struct tickless_quota_counts_t *counts);

/**
 * Frees a throttle; does nothing if the pointer is null. Its workers stay throttled until they
 * leave.
 */
enum tickless_status_t tickless_throttle_destroy(struct tickless_throttle_t *group);

/**
 * Makes the calling thread a worker of a throttle. CPU time that it used before is not charged.
 *
 * Errors: `TICKLESS_SHUT`.
 */
enum tickless_status_t tickless_throttle_join(const struct tickless_throttle_t *group,
                                              struct tickless_worker_t **worker);

/**
 * Parks the thread while the quota of this period is used up. `waited`, which may be null,
 * receives whether it parked. Call it in a loop, between two pieces of work: the thread exceeds
 * the quota by one piece at most, and that excess is charged to later periods. One system call of
 * some 100 ns.
 *
 * Errors: `TICKLESS_SHUT`.
 */
enum tickless_status_t tickless_worker_check(struct tickless_worker_t *worker, bool *waited);

/**
 * Gives back the unused rest of the thread's slice (the CPU time that it has taken from the
 * quota). Call it before the thread idles for long while other workers of its group run.
 *
 * Errors: those of `tickless_worker_check`.
 */
enum tickless_status_t tickless_worker_rest(struct tickless_worker_t *worker);

/**
 * Ends the thread's membership and gives back the unused rest of its slice; does nothing if the
 * pointer is null.
 */
enum tickless_status_t tickless_worker_leave(struct tickless_worker_t *worker);

/**
 * Gives a timer the label that `tickless_timers_list` shows, for example "http idle". Takes a
 * lock, and allocates. The library keeps a copy of each different text until the process ends, so
 * label kinds of timers, not single ones.
 *
 * Errors: `TICKLESS_UNSUPPORTED` if the label is not UTF-8; `TICKLESS_FULL` after 65,536 different
 * labels.
 */
enum tickless_status_t tickless_timer_label(const struct tickless_timer_t *timer,
                                            const char *label);

/**
 * Labels a periodic timer, as `tickless_timer_label` does.
 *
 * Errors: those of `tickless_timer_label`.
 */
enum tickless_status_t tickless_periodic_label(const struct tickless_periodic_t *timer,
                                               const char *label);

/**
 * Writes a human-readable list of every pending timer, base by base, with its label and its
 * deadline, into `text`, which has room for `room` bytes. The list is cut off where the room ends,
 * and ends with a zero unless `room` is 0. `needed`, which may be null, receives the number of
 * bytes of the whole list, with the zero. It can be longer in the next call, because timers are
 * armed and time passes: to get all of it, repeat the call with more room while `needed > room`.
 * O(n) for n pending timers; holds the lock of a base for at most 64 timers at a time.
 */
enum tickless_status_t tickless_timers_list(const struct tickless_timers_t *timers,
                                            char *text,
                                            size_t room,
                                            size_t *needed);

/**
 * Starts timers on `count` bases without threads of the library: `loops` receives a loop for each
 * base, which the program runs. For one loop, `count` is 1 and `loops` is the address of one
 * pointer. `options` may be null; its `bases` must be 0 or `count`, and options for threads of the
 * library (expiry threads, pinned drivers) are ignored.
 *
 * Arming a timer makes one system call if its deadline is earlier than all others of its base; no
 * other operation makes one. `TICKLESS_PIN(base)` keeps a timer in the loop of that number.
 *
 * Stop the timers first, then destroy the loops.
 *
 * Errors: `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE` for a count of 0 or beyond 65,535,
 * `TICKLESS_NO_DESCRIPTOR`.
 */
enum tickless_status_t tickless_timers_start_in_loops(const struct tickless_options_t *options,
                                                      uint32_t count,
                                                      struct tickless_timers_t **timers,
                                                      struct tickless_loop_t **loops);

/**
 * Returns the descriptor to poll. It is readable exactly while the loop has something to do. It
 * works with poll, select, epoll (level- or edge-triggered), and libraries built on them. Do not
 * read, set or close it. Any thread may call this function.
 */
enum tickless_status_t tickless_loop_fd(const struct tickless_loop_t *one, int *descriptor);

/**
 * Fires the timers that are due. `fired`, which may be null, receives how many fired. Costs one
 * clock reading if none is due, so the program may also call it when the descriptor is not
 * readable.
 *
 * Errors: `TICKLESS_BUSY` in a callback that this call runs.
 */
enum tickless_status_t tickless_loop_run(struct tickless_loop_t *one, uint64_t *fired);

/**
 * Returns how long a loop that waits with a timeout may wait from now, in nanoseconds;
 * `TICKLESS_NEVER` if no timer is pending, 0 if one is due. Round this time up. The loop must
 * still poll the descriptor while it waits: another thread can arm an earlier timer. No system
 * call.
 *
 * Errors: `TICKLESS_BUSY` in a callback.
 */
enum tickless_status_t tickless_loop_timeout(struct tickless_loop_t *one, uint64_t *timeout_ns);

/**
 * Makes the calling thread the owner of this loop. The previous owner must have finished using it,
 * and a lock or a join must order its last use before this call.
 *
 * Errors: `TICKLESS_BUSY` in a callback.
 */
enum tickless_status_t tickless_loop_adopt(struct tickless_loop_t *one);

/**
 * Destroys a loop and closes its descriptor; does nothing if the pointer is null. First remove the
 * descriptor from the poller. Timers of its base never fire afterwards.
 *
 * Errors: `TICKLESS_BUSY` in a callback.
 */
enum tickless_status_t tickless_loop_destroy(struct tickless_loop_t *one);

/**
 * Starts timers on a clock that stays at `now_ns` until `tickless_virtual_advance` moves it: for
 * tests of code that waits. Starts no thread. Callbacks run inside the call that moves the clock,
 * in order of expiry, and each sees exactly the time at which its timer is due. `options` may be
 * null for the defaults with one base. Otherwise the timers work as those of
 * `tickless_timers_start`.
 *
 * Errors: `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`.
 */
enum tickless_status_t tickless_timers_start_virtual(const struct tickless_options_t *options,
                                                     uint64_t now_ns,
                                                     struct tickless_timers_t **timers);

/**
 * Advances the clock from one expiry to the next, and fires the timers that come due. If a
 * callback of these timers calls it, it only moves the clock, as if the callback took that long.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE`; `TICKLESS_UNSUPPORTED` if the timers were not started by
 * `tickless_timers_start_virtual`; `TICKLESS_SHUT` in the child of a fork.
 */
enum tickless_status_t tickless_virtual_advance(const struct tickless_timers_t *timers,
                                                int64_t by_ns);

/**
 * Advances the clock to a point in time, as `tickless_virtual_advance` does. For a point that has
 * passed, it fires only the overdue timers.
 *
 * Errors: those of `tickless_virtual_advance`.
 */
enum tickless_status_t tickless_virtual_advance_to(const struct tickless_timers_t *timers,
                                                   uint64_t to_ns);

/**
 * Advances the clock to the next expiry, and fires all timers that are due at that time.
 * `has_fired`, which may be null, receives false if no timer was pending that would cause an
 * expiry.
 *
 * Errors: those of `tickless_virtual_advance`.
 */
enum tickless_status_t tickless_virtual_advance_to_next(const struct tickless_timers_t *timers,
                                                        bool *has_fired);

/**
 * Returns when the next timer comes due; `TICKLESS_NEVER` if no timer is pending that would cause
 * an expiry.
 *
 * Errors: those of `tickless_virtual_advance`.
 */
enum tickless_status_t tickless_virtual_next_event(const struct tickless_timers_t *timers,
                                                   uint64_t *next_ns);

/**
 * Sets wall-clock time, in nanoseconds since 1970, forwards or backwards, and fires the timers
 * that this makes due. Wall-clock time begins at 2000-01-01. No other clock moves.
 *
 * Errors: those of `tickless_virtual_advance`.
 */
enum tickless_status_t tickless_virtual_set_realtime(const struct tickless_timers_t *timers,
                                                     uint64_t to_ns);

/**
 * Simulates a suspend of the system for `for_ns`: boottime and wall-clock time advance, the
 * monotonic clock does not. Fires the timers that have come due during the suspend.
 *
 * Errors: those of `tickless_virtual_advance`.
 */
enum tickless_status_t tickless_virtual_suspend(const struct tickless_timers_t *timers,
                                                int64_t for_ns);

/**
 * Creates local timers on the system's monotonic clock (`CLOCK_MONOTONIC` on Linux), which
 * `tickless_local_start` and `tickless_local_now` read: a duration counts from the call. `tick_ns`
 * is the tick of coarse timers, 1,000 (1 us) to 1,000,000,000 (1 s), or 0 for 1 ms; `how` is one
 * of `TICKLESS_PUSH_OUT_...`.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_UNSUPPORTED`.
 */
enum tickless_status_t tickless_local_create(uint64_t tick_ns,
                                             uint32_t how,
                                             struct tickless_local_t **local);

/**
 * Creates local timers whose time only `tickless_local_advance` moves, and begins at `now_ns`, on
 * any clock that the loop chooses. Starting a timer reads no clock: a duration counts from the
 * last advance, so one that is given late in a long turn of the loop ends early by what the turn
 * has taken so far. Otherwise as `tickless_local_create`.
 *
 * Errors: those of `tickless_local_create`.
 */
enum tickless_status_t tickless_local_create_manual(uint64_t now_ns,
                                                    uint64_t tick_ns,
                                                    uint32_t how,
                                                    struct tickless_local_t **local);

/**
 * Returns the time for the next advance: a reading of the clock, or, of timers with a manual
 * clock, the time of the last advance.
 */
enum tickless_status_t tickless_local_now(struct tickless_local_t *local, uint64_t *now_ns);

/**
 * Frees local timers and all timers in them; does nothing if the pointer is null.
 *
 * Errors: `TICKLESS_BUSY` in a callback that their advance runs.
 */
enum tickless_status_t tickless_local_destroy(struct tickless_local_t *local);

/**
 * Makes the calling thread the owner of these local timers. The previous owner must have finished
 * using them, and a lock or a join must order its last use before this call.
 *
 * Errors: `TICKLESS_BUSY` in a callback that their advance runs.
 */
enum tickless_status_t tickless_local_adopt(struct tickless_local_t *local);

/**
 * Inserts a timer, but does not arm it. `kind` is `TICKLESS_COARSE` or `TICKLESS_PRECISE`. The
 * callback receives `data` when the timer fires. Allocates occasionally; arming and cancelling
 * never do.
 *
 * Errors: `TICKLESS_UNSUPPORTED`, `TICKLESS_FULL` (2^29 coarse or 2^31 precise timers).
 */
enum tickless_status_t tickless_local_insert(struct tickless_local_t *local,
                                             uint32_t kind,
                                             void *data,
                                             struct tickless_key_t *key);

/**
 * Cancels and removes a timer; `data`, which may be null, receives the data of its insertion.
 *
 * Errors: `TICKLESS_NO_SUCH_TIMER`.
 */
enum tickless_status_t tickless_local_remove(struct tickless_local_t *local,
                                             struct tickless_key_t key,
                                             void **data);

/**
 * Arms a timer to fire when `after_ns` has passed since this call, or, with a manual clock, since
 * the last advance. A pending timer is rearmed, earlier or later.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_NO_SUCH_TIMER`.
 */
enum tickless_status_t tickless_local_start(struct tickless_local_t *local,
                                            struct tickless_key_t key,
                                            int64_t after_ns);

/**
 * Arms or rearms a timer for a window on the loop's clock: a precise timer causes no wakeup of its
 * own before `hard_ns`, a coarse timer uses `soft_ns` as its deadline. A window that has passed
 * fires with the next advance.
 *
 * Errors: those of `tickless_local_start`; `TICKLESS_OUT_OF_RANGE` if the window ends before it
 * begins.
 */
enum tickless_status_t tickless_local_start_range(struct tickless_local_t *local,
                                                  struct tickless_key_t key,
                                                  uint64_t soft_ns,
                                                  uint64_t hard_ns);

/**
 * Cancels a timer. `was_pending` may be null.
 *
 * Errors: `TICKLESS_NO_SUCH_TIMER`.
 */
enum tickless_status_t tickless_local_cancel(struct tickless_local_t *local,
                                             struct tickless_key_t key,
                                             bool *was_pending);

/**
 * Reports whether the timer is pending; false if the key identifies no timer.
 */
enum tickless_status_t tickless_local_is_pending(struct tickless_local_t *local,
                                                 struct tickless_key_t key,
                                                 bool *is_pending);

/**
 * Returns when to advance next, on the loop's clock; `TICKLESS_NEVER` if no timer is pending. This
 * time is perhaps in the past. It is never later than the next expiry, and can be earlier if
 * coarse timers were pushed out.
 */
enum tickless_status_t tickless_local_next_event(struct tickless_local_t *local, uint64_t *next_ns);

/**
 * Sets the current time and calls `callback` for each timer that is due, for at most `budget`
 * timers; 0 means no limit. The next advance begins with the remaining ones. A timer that the
 * callback arms for a time that has passed fires with the next advance, so this call ends. If
 * `now_ns` is earlier than the time of the last advance, that time is used instead. `fired`, which
 * may be null, receives how many fired.
 *
 * Errors: `TICKLESS_BUSY` in a callback that this call runs.
 */
enum tickless_status_t tickless_local_advance(struct tickless_local_t *local,
                                              uint64_t now_ns,
                                              size_t budget,
                                              tickless_local_callback_t callback,
                                              void *context,
                                              size_t *fired);

/**
 * Reserves memory for `timers` timers of each kind, so that inserting them does not allocate.
 *
 * Errors: `TICKLESS_FULL` for more than 2^29 timers.
 */
enum tickless_status_t tickless_local_reserve(struct tickless_local_t *local, size_t timers);

/**
 * Returns the data that a timer was inserted with.
 *
 * Errors: `TICKLESS_NO_SUCH_TIMER`.
 */
enum tickless_status_t tickless_local_data(struct tickless_local_t *local,
                                           struct tickless_key_t key,
                                           void **data);

/**
 * Counts the timers, and those that are pending. Either pointer may be null.
 */
enum tickless_status_t tickless_local_count(struct tickless_local_t *local,
                                            size_t *timers,
                                            size_t *pending);

/**
 * Sets the current time, and writes the keys of the due timers into `keys`, in the order in which
 * they fire; these timers are no longer pending. The fastest way to fire many timers. It examines
 * at most `room` timers, including cancelled ones, so it can report none although one is due. If
 * more are due, `tickless_local_next_event` returns a time that has passed, and the next call
 * begins with them. Allocates if a timer fires.
 *
 * Errors: `TICKLESS_BUSY` in a callback of an advance.
 */
enum tickless_status_t tickless_local_advance_into(struct tickless_local_t *local,
                                                   uint64_t now_ns,
                                                   struct tickless_key_t *keys,
                                                   size_t room,
                                                   size_t *fired);

/**
 * Creates fixed timeouts without classes on the system's monotonic clock, as
 * `tickless_local_create` does.
 */
enum tickless_status_t tickless_fixed_create(struct tickless_fixed_t **fixed);

/**
 * Creates fixed timeouts whose time only `tickless_fixed_advance` moves, and begins at `now_ns`,
 * under the rules of `tickless_local_create_manual`.
 */
enum tickless_status_t tickless_fixed_create_manual(uint64_t now_ns,
                                                    struct tickless_fixed_t **fixed);

/**
 * Returns the time for the next advance, as `tickless_local_now` does.
 */
enum tickless_status_t tickless_fixed_now(struct tickless_fixed_t *fixed, uint64_t *now_ns);

/**
 * Frees fixed timeouts and all timers in them; does nothing if the pointer is null.
 *
 * Errors: `TICKLESS_BUSY` in a callback that their advance runs.
 */
enum tickless_status_t tickless_fixed_destroy(struct tickless_fixed_t *fixed);

/**
 * Makes the calling thread the owner of these fixed timeouts, as `tickless_local_adopt` does.
 *
 * Errors: `TICKLESS_BUSY` in a callback that their advance runs.
 */
enum tickless_status_t tickless_fixed_adopt(struct tickless_fixed_t *fixed);

/**
 * Adds a class of timers that fire `after_ns` after they are started, and writes its number.
 * Numbers start at 0. A class takes 1 KiB.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_FULL` (65,536 classes).
 */
enum tickless_status_t tickless_fixed_add_class(struct tickless_fixed_t *fixed,
                                                int64_t after_ns,
                                                uint32_t *number);

/**
 * Changes the duration of a class, also for its pending timers. Its scale factor stays.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE` for a bad duration or if the class does not exist.
 */
enum tickless_status_t tickless_fixed_set_after(struct tickless_fixed_t *fixed,
                                                uint32_t number,
                                                int64_t after_ns);

/**
 * Scales the duration of a class by a factor, also for its pending timers: 0.5 halves the
 * duration, 1 restores it. Timers that become overdue fire with the next advance.
 *
 * Errors: those of `tickless_fixed_set_after`; `TICKLESS_OUT_OF_RANGE` also for a factor that is
 * negative or not a number.
 */
enum tickless_status_t tickless_fixed_scale(struct tickless_fixed_t *fixed,
                                            uint32_t number,
                                            double factor);

/**
 * Inserts a timer of a class without starting it. The callback receives `data` when the timer
 * fires. Allocates occasionally; starting and cancelling never do.
 *
 * Errors: `TICKLESS_OUT_OF_RANGE` if the class does not exist, `TICKLESS_FULL` (2^29 timers).
 */
enum tickless_status_t tickless_fixed_insert(struct tickless_fixed_t *fixed,
                                             uint32_t number,
                                             void *data,
                                             struct tickless_key_t *key);

/**
 * Cancels and removes a timer; `data`, which may be null, receives the data of its insertion.
 *
 * Errors: `TICKLESS_NO_SUCH_TIMER`.
 */
enum tickless_status_t tickless_fixed_remove(struct tickless_fixed_t *fixed,
                                             struct tickless_key_t key,
                                             void **data);

/**
 * Starts or restarts a timer: it fires when its class's duration has passed since this call, or,
 * with a manual clock, since the last advance. Restarting a pending timer is a single store.
 *
 * Errors: `TICKLESS_NO_SUCH_TIMER`.
 */
enum tickless_status_t tickless_fixed_start(struct tickless_fixed_t *fixed,
                                            struct tickless_key_t key);

/**
 * Cancels a timer. `was_pending` may be null.
 *
 * Errors: those of `tickless_fixed_start`.
 */
enum tickless_status_t tickless_fixed_cancel(struct tickless_fixed_t *fixed,
                                             struct tickless_key_t key,
                                             bool *was_pending);

/**
 * Counts the timers, and those that are pending. Either pointer may be null.
 */
enum tickless_status_t tickless_fixed_count(struct tickless_fixed_t *fixed,
                                            size_t *timers,
                                            size_t *pending);

/**
 * Returns when to advance next, on the loop's clock; `TICKLESS_NEVER` if no timer is pending. The
 * cost grows with the number of classes. The time is never later than the next expiry, and can be
 * earlier if timers were restarted.
 */
enum tickless_status_t tickless_fixed_next_event(struct tickless_fixed_t *fixed, uint64_t *next_ns);

/**
 * Sets the current time and calls `callback` for each timer that is due, examining at most
 * `budget` timers; 0 means no limit. Otherwise as `tickless_local_advance`.
 *
 * Errors: `TICKLESS_BUSY` in a callback that this call runs.
 */
enum tickless_status_t tickless_fixed_advance(struct tickless_fixed_t *fixed,
                                              uint64_t now_ns,
                                              size_t budget,
                                              tickless_fixed_callback_t callback,
                                              void *context,
                                              size_t *fired);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/** Combine with the kind of a timer by `|`: the timer fires on this base only. */
#define TICKLESS_PIN(base) (TICKLESS_PINNED | ((uint32_t)(base) << 16))

/** See tickless_abi_check. */
#define TICKLESS_ABI_CHECK() \
  tickless_abi_check(TICKLESS_ABI, sizeof(tickless_timer_t), sizeof(tickless_periodic_t))

#if defined(__cplusplus)
static_assert(sizeof(tickless_timer_t) == 128 && sizeof(tickless_periodic_t) == 320,
              "this header is for 64-bit systems");
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(tickless_timer_t) == 128 && sizeof(tickless_periodic_t) == 320,
               "this header is for 64-bit systems");
#endif

#endif  /* TICKLESS_H */
