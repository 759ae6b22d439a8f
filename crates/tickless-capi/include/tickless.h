/*
 * Tickless: Linux's timer subsystem for programs.
 *
 * Made from the sources of crates/tickless-capi by tests/header.rs; do not edit. How to build and
 * link: docs/book/src/c.md. C11 or later, C++11 or later (tickless.hpp: C++17); 64-bit Linux.
 *
 * Three sorts of timers, all with a callback:
 * - tickless_timer_t, coarse or precise, and tickless_periodic_t, in the caller's own memory. They
 *   belong to a tickless_timers_t, whose threads call the callbacks.
 * - timers of a tickless_local_t, for a loop of one's own: no threads, no locks, no clock; and of
 *   a tickless_fixed_t, all of one duration.
 * A tickless_clock_timer_t is one on the time of day or on boottime, and is allocated.
 *
 * A tickless_timers_t has threads (tickless_timers_start), or is driven by loops of the program's
 * (tickless_timers_start_in_loops), or stands until a test moves its clock
 * (tickless_timers_start_virtual). On any of them stand limiters and throttles: so many permits,
 * or so much CPU time, in every period.
 *
 * Units. Everything is in nanoseconds. Durations are int64_t, 0 to 292 years; negative ones are
 * errors. Points in time are uint64_t on the clock of tickless_timers_now (local timers: on the
 * loop's own clock); sums saturate at TICKLESS_NEVER.
 *
 * Errors. Every call returns a tickless_status_t; tickless_error_text says more. A call that
 * returns an error has changed nothing, unless it says so. No panic crosses this interface, and
 * no call ends the process (but see C++ exceptions below, and memory that the system does not
 * give).
 *
 * Threads. Everything but local and fixed timers, loops and workers may be used from all threads at
 * once, callbacks included, except init, destroy and stop, which nobody else may overlap with on
 * the same object. Callbacks of one timer never overlap.
 *
 * Blocking. Only tickless_timers_start and _stop, the cancels named _sync and _single_shot,
 * shutdown_sync, destroy, tickless_limiter_acquire and tickless_worker_check ever wait. In a
 * callback the cancels, shutdown_sync and destroy wait only if that can end.
 *
 * Never early. A timer is late by at most its slack or granule, and by what waking a thread takes.
 *
 * Misuse that is noticed, and is an error: null and misaligned pointers, unknown choices, numbers
 * out of range, a timer that was never initialised in zeroed memory, was initialised twice, was
 * destroyed, or was copied to another address; starting a timer that was shut down; waiting for a
 * callback that waits for the caller; stopping timers that are in use; local timers used by
 * another thread, or advanced from their own callback.
 *
 * Misuse that cannot be noticed, and is undefined behaviour:
 * - freeing, moving or writing a timer's memory before it was destroyed (its callback excepted,
 *   which may destroy and free it);
 * - using a timer in one thread while another destroys it, or a tickless_timers_t or
 *   tickless_local_t after it was stopped or destroyed;
 * - memory that was not zeroed before the first init and by chance looks like a timer;
 * - a tickless_fired_t after its callback has returned, or in another thread;
 * - pointers that lead nowhere, and a size field that says more bytes than there are;
 * - leaving a callback other than by return: longjmp, pthread_exit, cancellation of the thread. A
 *   C++ exception that leaves a callback ends the process by abort();
 * - any call from a signal handler: they take locks. (Block the signal and use sigwait in a
 *   thread, which may do anything.)
 * - returning from a callback in the child of a fork made there; exec or _exit instead;
 * - unloading the library (dlclose) while timers run.
 *
 * Misuse that hangs: waiting for a callback while holding a lock which that callback takes.
 */


#ifndef TICKLESS_H
#define TICKLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The version that this header belongs to: changes that break programs...
 */
#define TICKLESS_VERSION_MAJOR 0

/*
 ...changes that add something (and, while the first number is 0, may break programs)...
 */
#define TICKLESS_VERSION_MINOR 1

/*
 ...and changes that do neither.
 */
#define TICKLESS_VERSION_PATCH 0

/*
 Goes up with every change after which programs must be compiled anew.
 */
#define TICKLESS_ABI 1

/*
 `policy`: taking the first timer off does not wake the driver; it may wake once for nothing.
 */
#define TICKLESS_POLICY_LAZY 0

/*
 `policy`: taking the first timer off programs the driver anew, a restart twice.
 */
#define TICKLESS_POLICY_EAGER 1

/*
 `policy`: a cancel programs, a restart is judged as a whole.
 */
#define TICKLESS_POLICY_RESTART_AWARE 2

/*
 `push_out`: pushing a timeout out touches the timer alone.
 */
#define TICKLESS_PUSH_OUT_LAZY 0

/*
 `push_out`: it moves to its new place at once, so that equals fire exactly as armed.
 */
#define TICKLESS_PUSH_OUT_EAGER 1

/*
 `deferral`: all callbacks run in the drivers.
 */
#define TICKLESS_DEFERRAL_NONE 0

/*
 `deferral`: those of coarse timers, and of precise ones that are `TICKLESS_DEFERRED`, run in
 an expiry thread of each base, so that they may take long.
 */
#define TICKLESS_DEFERRAL_ON_EXPIRY 1

/*
 `deferral`: the same, woken by every tick. There to be compared with.
 */
#define TICKLESS_DEFERRAL_EVERY_TICK 2

/*
 `flags`: read `CLOCK_MONOTONIC` every time, even where the CPU's counter could be trusted.
 */
#define TICKLESS_SYSTEM_CLOCK 1

/*
 `flags`: keep each driver thread on its base's CPU.
 */
#define TICKLESS_PIN_DRIVERS 2

/*
 Later than every deadline: a timer armed for this never fires.
 */
#define TICKLESS_NEVER UINT64_MAX

/*
 `base`: the sum over all bases.
 */
#define TICKLESS_ALL_BASES UINT32_MAX

/*
 `kind`: a timeout, on a timer wheel. Never early; late by at most 13 % of its distance
 and a tick. Arming, pushing out and cancelling take some nanoseconds however many are pending.
 */
#define TICKLESS_COARSE 0

/*
 `kind`: a high-resolution timer, in a sorted queue. Never early; late by what waking a thread
 takes, and by its slack.
 */
#define TICKLESS_PRECISE 1

/*
 `kind`, coarse only, with `|`: fires with the first event of its base after its deadline, and
 never causes one.
 */
#define TICKLESS_DEFERRABLE 256

/*
 `kind`, precise only, with `|`: its callback runs in the expiry thread of its base, if there is
 one (see `deferral` in the options).
 */
#define TICKLESS_DEFERRED 512

/*
 `kind`, with `|`: on the base whose number stands in the upper 16 bits. Use `TICKLESS_PIN(n)`.
 */
#define TICKLESS_PINNED 1024

/*
 `missed`: periods that were missed are skipped, and counted. The phase stays.
 */
#define TICKLESS_SKIP 0

/*
 `missed`: each is made up for at once, one callback after another. The phase stays.
 */
#define TICKLESS_BURST 1

/*
 `missed`: the next expiry is a full period from now. The phase moves.
 */
#define TICKLESS_DELAY 2

/*
 `phase`: none; the first expiry is a period from the start.
 */
#define TICKLESS_PHASE_NONE 0

/*
 `phase`: multiples of the period on the clock, so that all such timers share wakeups.
 */
#define TICKLESS_PHASE_ALIGNED 1

/*
 `phase`: as far as can be from other timers of the same period.
 */
#define TICKLESS_PHASE_SPREAD 2

/*
 `phase`: by chance; `phase_value` is the seed.
 */
#define TICKLESS_PHASE_RANDOM 3

/*
 `phase`: `phase_value` nanoseconds behind the multiples of the period; below one period.
 */
#define TICKLESS_PHASE_FIXED 4

/*
 `clock`: that of all other timers. It is never set, and stands while the system is suspended.
 */
#define TICKLESS_CLOCK_MONOTONIC 0

/*
 `clock`: the time since boot. It is never set, and goes on while the system is suspended.
 */
#define TICKLESS_CLOCK_BOOTTIME 1

/*
 `clock`: the time of day, in nanoseconds since 1970. It may be set, forwards or backwards, and
 goes on while the system is suspended.
 */
#define TICKLESS_CLOCK_REALTIME 2

/*
 What a call returns. Everything but `TICKLESS_OK` is an error, and has changed nothing
 unless it says so; `tickless_error_text` has a sentence on what to do.
 */
typedef enum tickless_status_t {
  /*
   All is well.
   */
  TICKLESS_OK = 0,
  /*
   A pointer that must not be null is null.
   */
  TICKLESS_NULL_POINTER = 1,
  /*
   A pointer to storage that is not aligned as its type demands.
   */
  TICKLESS_MISALIGNED = 2,
  /*
   A struct of a size, or a flag or choice, that this version of the library does not know.
   */
  TICKLESS_UNSUPPORTED = 3,
  /*
   A number outside of its range: a negative duration, say.
   */
  TICKLESS_OUT_OF_RANGE = 4,
  /*
   The storage was never initialised, has been destroyed, or was copied from elsewhere.
   */
  TICKLESS_NOT_INITIALISED = 5,
  /*
   The storage holds a timer already. Destroy that first.
   */
  TICKLESS_ALREADY_INITIALISED = 6,
  /*
   It is still in use: a set of timers by its timers, local timers by their own advance.
   */
  TICKLESS_BUSY = 7,
  /*
   The timer has been shut down, or a fork has left it behind in a child.
   */
  TICKLESS_SHUT = 8,
  /*
   There is no base of this number.
   */
  TICKLESS_NO_SUCH_BASE = 9,
  /*
   The call would wait for a callback that waits for the caller. A cancel that returns this
   has cancelled the timer, but its callback may still be running.
   */
  TICKLESS_WOULD_DEADLOCK = 10,
  /*
   `cancel_single_shot` of a timer that was armed again while its callback ran. It has been
   cancelled, and its callback is over.
   */
  TICKLESS_NOT_SINGLE_SHOT = 11,
  /*
   Local timers were used by another thread than their own.
   */
  TICKLESS_WRONG_THREAD = 12,
  /*
   The key's timer has been removed, or is another table's.
   */
  TICKLESS_NO_SUCH_TIMER = 13,
  /*
   There is no room for another local timer.
   */
  TICKLESS_FULL = 14,
  /*
   The system refused a thread.
   */
  TICKLESS_NO_THREAD = 15,
  /*
   The program was compiled with the header of another version.
   */
  TICKLESS_ABI_MISMATCH = 16,
  /*
   A defect in the library: it panicked, and the panic was caught at its edge. What the call
   was about is in an unknown state.
   */
  TICKLESS_INTERNAL = 17,
  /*
   The system refused a descriptor for a loop.
   */
  TICKLESS_NO_DESCRIPTOR = 18,
  /*
   Too few permits are left in this period, or others wait for them.
   */
  TICKLESS_EMPTY = 19,
  /*
   What was waited for did not come in time.
   */
  TICKLESS_TIMED_OUT = 20,
} tickless_status_t;

/*
 What a cancel found.
 */
typedef enum tickless_cancel_t {
  /*
   The timer was neither pending nor running.
   */
  TICKLESS_CANCEL_IDLE = 0,
  /*
   It was pending; that arming will not fire.
   */
  TICKLESS_CANCEL_PENDING = 1,
  /*
   Its callback was running.
   */
  TICKLESS_CANCEL_RUNNING = 2,
} tickless_cancel_t;

/*
 A clock timer that fires, as its callback sees it. Opaque; good until the callback returns, and
 in the thread that runs it.
 */
typedef struct tickless_clock_fired_t tickless_clock_fired_t;

/*
 A timer whose deadlines are on a clock of the program's choice; from
 `tickless_clock_timer_create`. Opaque.

 Never early on its own clock. When the time of day is set, absolute deadlines on it stay what
 they are: they fire at once if they have passed, and are put off if it went back. Durations are
 left alone: ten seconds are ten seconds. On boottime both count the time of a suspend.

 The first one of a set starts a thread that waits for the clock to be set, unless a loop of the
 program's drives the set: there such timers look at their clock once a second.
 */
typedef struct tickless_clock_timer_t tickless_clock_timer_t;

/*
 A timer that fires, as its callback sees it. Opaque; good until the callback returns, and in
 the thread that runs it. Also good after the callback has destroyed its timer: what it asks
 for is ignored then.
 */
typedef struct tickless_fired_t tickless_fired_t;

/*
 Timeouts of one thread, all those of a class with one duration, which can be changed while they
 are pending. Opaque. Starting a pending one again is one store.

 A server gives all connections of a listener one idle timeout: a class. Under overload it
 halves that with one call, and the connections that have been idle longest come due at once.

 Never early; late by at most a sixteenth of the class's duration, or of the one that it was
 created with if that is longer. Used by the thread that created them, or the last one that
 adopted them, as `tickless_local_t`.
 */
typedef struct tickless_fixed_t tickless_fixed_t;

/*
 The same for each key apart, addresses or users; from `tickless_keyed_create`. Opaque. May be
 used from all threads.
 */
typedef struct tickless_keyed_t tickless_keyed_t;

/*
 Permits, so many in every period, first come, first served; from `tickless_limiter_create`.
 Opaque. May be used from all threads.
 */
typedef struct tickless_limiter_t tickless_limiter_t;

/*
 Timers of one thread. Opaque. The loop asks when the next one is due, waits that long for its
 own events, says what time it is, and is called for each timer that fires.

 Used by the thread that created them, or the last one that adopted them; other threads are
 told so.
 */
typedef struct tickless_local_t tickless_local_t;

/*
 What drives one base of a set of timers, in the program's own loop. Opaque.

 The loop polls its descriptor for reading, beside its others, and calls `tickless_loop_run` when
 that is readable. Callbacks run inside of that, on the loop's thread, one at a time. Timers can
 be armed and cancelled from all threads; while nobody runs the loop none fires.

 Used by the thread that started it, or the last one that adopted it.
 */
typedef struct tickless_loop_t tickless_loop_t;

/*
 Threads that share so much CPU time in every period; from `tickless_throttle_create`. Opaque.
 May be used from all threads.
 */
typedef struct tickless_throttle_t tickless_throttle_t;

/*
 A set of timers: a base and a driver thread for each CPU. Opaque.

 May be used from all threads. In the child of a fork its timers count as shut down: nothing
 fires, arming is `TICKLESS_SHUT`, a cancel finds nothing, and destroying and stopping wait for
 nothing. A child may start timers of its own. A callback that forks must not return in the
 child.
 */
typedef struct tickless_timers_t tickless_timers_t;

/*
 One thread's part in a throttle; from `tickless_throttle_join`. Opaque. For that thread alone.
 */
typedef struct tickless_worker_t tickless_worker_t;

/*
 How to start timers. Set all of it to zero, then `size` to `sizeof(tickless_options_t)`; zero
 is the default everywhere.
 */
typedef struct tickless_options_t {
  /*
   `sizeof(tickless_options_t)`, so that a later version can add fields.
   */
  size_t size;
  /*
   The tick of coarse timers in nanoseconds, 1,000 (1 us) to 1,000,000,000 (1 s). Default:
   1 ms.
   */
  uint64_t tick_ns;
  /*
   With deferral: how long an expiry thread may be in one callback before another thread
   fires its other timers, in nanoseconds. Default: 100 ms.
   */
  uint64_t patience_ns;
  /*
   How many bases, each with a driver thread; at most 65,535. Default: one for each CPU that
   the process may use.
   */
  uint32_t bases;
  /*
   One of `TICKLESS_POLICY_...`.
   */
  uint32_t policy;
  /*
   One of `TICKLESS_PUSH_OUT_...`.
   */
  uint32_t push_out;
  /*
   One of `TICKLESS_DEFERRAL_...`.
   */
  uint32_t deferral;
  /*
   `TICKLESS_SYSTEM_CLOCK`, `TICKLESS_PIN_DRIVERS`, or both with `|`.
   */
  uint32_t flags;
  /*
   Zero.
   */
  uint32_t reserved;
} tickless_options_t;

/*
 What has happened on one base, or on all. Set `size` before asking.
 */
typedef struct tickless_stats_t {
  /*
   `sizeof(tickless_stats_t)`.
   */
  size_t size;
  /*
   How many bases this is the sum of; 0 in the child of a fork.
   */
  uint64_t bases;
  /*
   Coarse timers pending.
   */
  uint64_t pending_coarse;
  /*
   Precise and periodic timers pending.
   */
  uint64_t pending_precise;
  /*
   When the next one is due; `TICKLESS_NEVER` if none is.
   */
  uint64_t earliest_ns;
  /*
   Idle timers that were armed.
   */
  uint64_t armed;
  /*
   Pending timers that were armed anew, but for timeouts that were pushed out without a lock.
   */
  uint64_t rearmed;
  /*
   Armings that were cancelled.
   */
  uint64_t cancelled;
  /*
   Armings that fired.
   */
  uint64_t fired;
  /*
   Timers that came from another base.
   */
  uint64_t migrated;
  /*
   Pushed-out timeouts that were moved when their old bucket came due.
   */
  uint64_t relocated;
  /*
   Times the driver was programmed.
   */
  uint64_t device_writes;
  /*
   Times it woke and found nothing due.
   */
  uint64_t device_spurious;
  /*
   System calls that woke the driver for an earlier deadline.
   */
  uint64_t wake_calls;
  /*
   System calls by which the driver went to sleep.
   */
  uint64_t sleeps;
  /*
   System calls that woke the expiry thread.
   */
  uint64_t expirer_calls;
} tickless_stats_t;

/*
 Memory for one timer, anywhere: on the stack, in a struct, from `malloc`. Opaque.

 Set it to zero before its first `tickless_timer_init`, or misuse of it may not be noticed. From
 init to destroy it must stay where it is and must not be written. 128 bytes, of which timers
 that are used much had best begin at a multiple of 64.
 */
typedef struct tickless_timer_t {
  /*
   Not to be touched.
   */
  uint64_t opaque[16];
} tickless_timer_t;

/*
 What a timer calls when it fires, with the `data` that it was initialised with.

 Runs on a thread of the library, one at a time per base. It should be short: it delays the
 other timers of its base, and no others. It must return: `longjmp`, `pthread_exit` and thread
 cancellation across it are undefined. A C++ exception that leaves it ends the process.
 */
typedef void (*tickless_callback_t)(struct tickless_fired_t *fired, void *data);

/*
 Memory for one periodic timer: as `tickless_timer_t`, but 320 bytes. Opaque.
 */
typedef struct tickless_periodic_t {
  /*
   Not to be touched.
   */
  uint64_t opaque[40];
} tickless_periodic_t;

/*
 How a periodic timer behaves. Set all of it to zero, then `size` to
 `sizeof(tickless_periodic_options_t)`; zero is the default everywhere.
 */
typedef struct tickless_periodic_options_t {
  /*
   `sizeof(tickless_periodic_options_t)`.
   */
  size_t size;
  /*
   By how much each expiry may be late to share a wakeup with others, in nanoseconds.
   */
  uint64_t slack_ns;
  /*
   See `TICKLESS_PHASE_RANDOM` and `TICKLESS_PHASE_FIXED`; otherwise zero.
   */
  uint64_t phase_value;
  /*
   One of `TICKLESS_SKIP`, `TICKLESS_BURST`, `TICKLESS_DELAY`.
   */
  uint32_t missed;
  /*
   One of `TICKLESS_PHASE_...`.
   */
  uint32_t phase;
} tickless_periodic_options_t;

/*
 What a clock timer calls when it fires; as `tickless_callback_t`.
 */
typedef void (*tickless_clock_callback_t)(struct tickless_clock_fired_t *fired, void *data);

/*
 How much there is in every period, for a limiter in permits, for a throttle in nanoseconds of
 CPU time. Set all of it to zero, then `size` to `sizeof(tickless_quota_t)`.
 */
typedef struct tickless_quota_t {
  /*
   `sizeof(tickless_quota_t)`.
   */
  size_t size;
  /*
   So much in every period; at least 1. For a throttle at most a period for each CPU.
   */
  uint64_t quota;
  /*
   The period, in nanoseconds; at least 1.
   */
  uint64_t period_ns;
  /*
   So much of what a period leaves over may be used later, on top of a period's own.
   */
  uint64_t extra;
  /*
   How late a refill may be to share a wakeup, in nanoseconds. Default: a thousandth of the
   period, and up to a tenth if there are hundreds of the same period.
   */
  uint64_t slack_ns;
  /*
   See `TICKLESS_PHASE_RANDOM` and `TICKLESS_PHASE_FIXED`; otherwise zero.
   */
  uint64_t phase_value;
  /*
   After a refill those that wait are let go `release_batch` at a time, `release_gap_ns`
   apart. Default: both as suits the period.
   */
  uint64_t release_gap_ns;
  /*
   See `release_gap_ns`; `UINT32_MAX` lets all go at once.
   */
  uint32_t release_batch;
  /*
   Where in its period it is refilled: one of `TICKLESS_PHASE_...`. Default: spread.
   */
  uint32_t phase;
} tickless_quota_t;

/*
 What has happened to a limiter or a throttle. Set `size` before asking. In permits, or in
 nanoseconds of CPU time.
 */
typedef struct tickless_quota_counts_t {
  /*
   `sizeof(tickless_quota_counts_t)`.
   */
  size_t size;
  /*
   What has been used.
   */
  uint64_t used;
  /*
   What refills have brought.
   */
  uint64_t refilled;
  /*
   What they brought beyond what may be kept.
   */
  uint64_t expired;
  /*
   Refills.
   */
  uint64_t refills;
  /*
   How often somebody had to wait.
   */
  uint64_t throttled;
  /*
   How long they waited all together, in nanoseconds.
   */
  uint64_t waited_ns;
  /*
   How many wait now.
   */
  uint64_t waiting;
} tickless_quota_counts_t;

/*
 Names a timer of one `tickless_local_t`. Once that timer has been removed the key finds
 nothing, and a key of zeros never does.
 */
typedef struct tickless_key_t {
  /*
   Not to be interpreted.
   */
  uint64_t bits;
} tickless_key_t;

/*
 What `tickless_local_advance` calls for a timer that fires, which is idle by then. It may do
 anything with the timers but advance or destroy them. It must return; a C++ exception that
 leaves it ends the process. `context` is what was handed to the advance, `data` the timer's.
 */
typedef void (*tickless_local_callback_t)(struct tickless_local_t *local,
                                          struct tickless_key_t key,
                                          void *data,
                                          void *context);

/*
 A timer of a `tickless_local_t`, and what to arm it for.
 */
typedef struct tickless_arming_t {
  /*
   Which one.
   */
  struct tickless_key_t key;
  /*
   For when, on the loop's clock.
   */
  uint64_t deadline_ns;
} tickless_arming_t;

/*
 What `tickless_fixed_advance` calls for a timer that fires; as `tickless_local_callback_t`.
 */
typedef void (*tickless_fixed_callback_t)(struct tickless_fixed_t *fixed,
                                          struct tickless_key_t key,
                                          void *data,
                                          void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The library's version, "0.1.0" say, which may differ from the header's. Never null.
 */
const char *tickless_version(void);

/*
 Does this library go with the header that a program was compiled with? Call it by the macro
 `TICKLESS_ABI_CHECK()`, once, before anything else. Errors: `TICKLESS_ABI_MISMATCH`, after
 which nothing else of the library may be called.
 */
enum tickless_status_t tickless_abi_check(uint32_t abi, size_t timer_size, size_t periodic_size);

/*
 A sentence about the last error of the calling thread, in English and UTF-8: what is wrong
 and what to do. Empty if there was none. The text belongs to the library, and is good until
 this thread's next call that fails. Never null.
 */
const char *tickless_error_text(void);

/*
 The name of a status, "TICKLESS_BUSY" say; "unknown" for any other number. Never null.
 */
const char *tickless_status_name(int32_t status);

/*
 Starts timers. `options` may be null for the defaults; `timers` receives them. Blocks for
 about a millisecond, to calibrate the clock. Its threads inherit the caller's signal mask.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`,
 `TICKLESS_NO_THREAD`.

 The caller sees to this:
 `options` is null or leads to as many readable bytes as its `size` says; `timers` can be
 written.
 */
enum tickless_status_t tickless_timers_start(const struct tickless_options_t *options,
                                             struct tickless_timers_t **timers);

/*
 Stops timers and frees them; null is nothing to do. Waits until the driver threads have ended.

 Errors: `TICKLESS_BUSY` as long as one of their timers is initialised, or a limiter or throttle
 on them is there: destroy those first. (It takes 100 ms to say so.)
 `TICKLESS_WOULD_DEADLOCK` inside a callback of theirs. After an error they run on.

 The caller sees to this:
 `timers` is null or came from `tickless_timers_start` and was not stopped; no other thread
 uses it now or later.
 */
enum tickless_status_t tickless_timers_stop(struct tickless_timers_t *timers);

/*
 The present, in nanoseconds, on the clock that deadlines are given in. It never goes back, is
 close to `CLOCK_MONOTONIC`, and stands still while the system is suspended. Costs about 11 ns
 where the CPU's counter can be trusted; no lock, no system call.

 Errors: `TICKLESS_NULL_POINTER`.

 The caller sees to this:
 `timers` came from `tickless_timers_start` and was not stopped; `now_ns` can be written.
 */
enum tickless_status_t tickless_timers_now(const struct tickless_timers_t *timers,
                                           uint64_t *now_ns);

/*
 Counters of one base, or of all with `TICKLESS_ALL_BASES`. Takes each base's lock once, and
 allocates.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NO_SUCH_BASE`, `TICKLESS_UNSUPPORTED`.

 The caller sees to this:
 `timers` came from `tickless_timers_start` and was not stopped; `stats` leads to as many bytes
 as its `size` says, which can be written.
 */
enum tickless_status_t tickless_timers_stats(const struct tickless_timers_t *timers,
                                             uint32_t base,
                                             struct tickless_stats_t *stats);

/*
 Everything about an expiry; null where it is not wanted. The deadline that the timer was armed
 with, when it was found to be due (never before the deadline), on which base, and for a
 periodic timer how many expiries were missed (with `TICKLESS_BURST`: are still to be made up
 for). No clock is read.

 Errors: `TICKLESS_NULL_POINTER`.

 The caller sees to this:
 `fired` was handed to a callback that has not returned, on this thread; the rest can be
 written.
 */
enum tickless_status_t tickless_fired_info(struct tickless_fired_t *fired,
                                           uint64_t *deadline_ns,
                                           uint64_t *found_ns,
                                           uint32_t *base,
                                           uint64_t *overruns);

/*
 The present, in nanoseconds. Reads the clock.

 Errors: `TICKLESS_NULL_POINTER`.

 The caller sees to this:
 `fired` is as for `tickless_fired_info`, and results can be written.
 */
enum tickless_status_t tickless_fired_now(struct tickless_fired_t *fired, uint64_t *now_ns);

/*
 Has the timer armed again, `after_ns` from now, when the callback is over. Cheaper than
 starting it by its handle, and cannot collide with that: if somebody else has armed the timer
 meanwhile, that stands. Of several requests the last one counts. Reads the clock.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`.

 The caller sees to this:
 `fired` is as for `tickless_fired_info`, and results can be written.
 */
enum tickless_status_t tickless_fired_restart(struct tickless_fired_t *fired, int64_t after_ns);

/*
 The same for a window between two points in time; a coarse timer takes the first.

 Errors: `TICKLESS_NULL_POINTER`; `TICKLESS_OUT_OF_RANGE` if the window ends before it begins.

 The caller sees to this:
 `fired` is as for `tickless_fired_info`, and results can be written.
 */
enum tickless_status_t tickless_fired_restart_range(struct tickless_fired_t *fired,
                                                    uint64_t soft_ns,
                                                    uint64_t hard_ns);

/*
 Has the timer armed again whole periods after its own deadline, so that it does not drift: at
 the first such moment that has not passed. `overruns`, which may be null, receives how many
 expiries were missed: 0 if the callback kept up. Reads the clock. Not needed by periodic
 timers, which do this by themselves.

 Errors: `TICKLESS_NULL_POINTER`; `TICKLESS_OUT_OF_RANGE` if the period is not positive.

 The caller sees to this:
 `fired` is as for `tickless_fired_info`, and results can be written.
 */
enum tickless_status_t tickless_fired_forward(struct tickless_fired_t *fired,
                                              int64_t period_ns,
                                              uint64_t *overruns);

/*
 Takes back what the callback asked for: the timer stays idle. Ends a periodic timer.

 Errors: `TICKLESS_NULL_POINTER`.

 The caller sees to this:
 `fired` is as for `tickless_fired_info`, and results can be written.
 */
enum tickless_status_t tickless_fired_stop(struct tickless_fired_t *fired);

/*
 Makes a timer, not armed, in its caller's memory; allocates nothing.

 `kind` is `TICKLESS_COARSE` or `TICKLESS_PRECISE`, and further choices with `|`. When the timer
 fires, `callback` is called with `data`, on a thread of the library.

 Errors: `TICKLESS_NULL_POINTER` (for `timer`, `timers`, `callback`), `TICKLESS_MISALIGNED`,
 `TICKLESS_ALREADY_INITIALISED`, `TICKLESS_UNSUPPORTED`, `TICKLESS_NO_SUCH_BASE`.

 The caller sees to this:
 `timer` leads to storage that nobody else uses now, and that outlives the timer; `timers` came
 from `tickless_timers_start` and was not stopped.
 */
enum tickless_status_t tickless_timer_init(struct tickless_timer_t *timer,
                                           const struct tickless_timers_t *timers,
                                           uint32_t kind,
                                           tickless_callback_t callback,
                                           void *data);

/*
 Arms a timer, or arms it anew, earlier or later, to fire `after_ns` from now. Allocates
 nothing; makes no system call unless the deadline comes before everything that a sleeping
 driver waits for. Durations up to 292 years; deadlines beyond the clock's end never come.

 If somebody is in a waiting cancel of the timer while its callback runs, this arming is
 cancelled too, and that is no error.

 Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_SHUT`, and those of all calls that take a timer:
 `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile.
 */
enum tickless_status_t tickless_timer_start(const struct tickless_timer_t *timer, int64_t after_ns);

/*
 The same, but it may be late by `slack_ns` to share a wakeup with others. Precise timers only.

 Errors: as `tickless_timer_start`; `TICKLESS_UNSUPPORTED` for a coarse one.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile.
 */
enum tickless_status_t tickless_timer_start_slack(const struct tickless_timer_t *timer,
                                                  int64_t after_ns,
                                                  int64_t slack_ns);

/*
 Arms a timer, or arms it anew, for a point in time on the timers' clock. One that has passed
 fires at once; `TICKLESS_NEVER` never comes.

 Errors: `TICKLESS_SHUT`, and those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile.
 */
enum tickless_status_t tickless_timer_start_at(const struct tickless_timer_t *timer,
                                               uint64_t deadline_ns);

/*
 Arms a timer, or arms it anew, to fire within a window: not before `soft_ns`; from then on with
 any event of its base, and at `hard_ns` with one of its own. Precise timers only.

 Errors: `TICKLESS_OUT_OF_RANGE` if the window ends before it begins, `TICKLESS_SHUT`,
 `TICKLESS_UNSUPPORTED` for a coarse one, and those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile.
 */
enum tickless_status_t tickless_timer_start_range(const struct tickless_timer_t *timer,
                                                  uint64_t soft_ns,
                                                  uint64_t hard_ns);

/*
 Arms a timer; if it is pending, only makes it earlier, never later. Coarse timers only.

 Errors: as `tickless_timer_start`; `TICKLESS_UNSUPPORTED` for a precise one.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile.
 */
enum tickless_status_t tickless_timer_reduce(const struct tickless_timer_t *timer,
                                             int64_t after_ns);

/*
 Cancels a timer, unless its callback is running: then this says so and changes nothing. Never
 waits; no lock if the timer is idle. `found` may be null, as for all cancels.

 Errors: those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
 */
enum tickless_status_t tickless_timer_try_cancel(const struct tickless_timer_t *timer,
                                                 enum tickless_cancel_t *found);

/*
 Cancels a timer without waiting for its callback; no lock if it is idle.
 `TICKLESS_CANCEL_RUNNING` says that the callback may still be at work, and may still ask for a
 restart.

 Errors: those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
 */
enum tickless_status_t tickless_timer_cancel(const struct tickless_timer_t *timer,
                                             enum tickless_cancel_t *found);

/*
 Cancels a timer and waits until its callback runs nowhere: then what the callback wrote can be
 seen, and what it uses can go. `found` says what it was when this came. Waits some microseconds
 awake, then asleep; an arming that comes meanwhile, the callback's own included, is cancelled
 too. Do not hold a lock that the callback takes: such a circle is not seen, and hangs.

 Errors: `TICKLESS_WOULD_DEADLOCK` in the timer's own callback, or in one that its callback
 waits for; the timer has been cancelled, `found` says so, and its callback may be running. And
 those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
 */
enum tickless_status_t tickless_timer_cancel_sync(const struct tickless_timer_t *timer,
                                                  enum tickless_cancel_t *found);

/*
 The same, a little cheaper, for a timer that nobody arms again while its callback runs, the
 callback included.

 Errors: as `tickless_timer_cancel_sync`; `TICKLESS_NOT_SINGLE_SHOT` if it was armed after all:
 it has been cancelled, and its callback is over.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
 */
enum tickless_status_t tickless_timer_cancel_single_shot(const struct tickless_timer_t *timer,
                                                         enum tickless_cancel_t *found);

/*
 Cancels a timer for good and waits as `tickless_timer_cancel_sync` does: every later arming is
 `TICKLESS_SHUT`, whoever tries. The storage stays initialised; destroy it all the same.

 Errors: as `tickless_timer_cancel_sync`; the timer is shut down in any case.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
 */
enum tickless_status_t tickless_timer_shutdown_sync(const struct tickless_timer_t *timer,
                                                    enum tickless_cancel_t *found);

/*
 Is the timer armed? May be out of date as soon as it is known.

 Errors: those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `is_pending` can be written.
 */
enum tickless_status_t tickless_timer_is_pending(const struct tickless_timer_t *timer,
                                                 bool *is_pending);

/*
 Is the timer armed, or its callback running? Never a false no; a yes may be out of date.

 Errors: those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `is_active` can be written.
 */
enum tickless_status_t tickless_timer_is_active(const struct tickless_timer_t *timer,
                                                bool *is_active);

/*
 Ends a timer: shuts it down, waits for its callback as `tickless_timer_cancel_sync` does, and
 gives the memory back, to be freed or initialised anew.

 In the timer's own callback it does not wait, and is no error: the library does not touch the
 memory any more, so a callback may destroy its timer and free it. Nobody else may be using the
 timer at that moment.

 Errors: `TICKLESS_WOULD_DEADLOCK` in another timer's callback that this one's callback waits
 for: the timer is shut down, its memory still in use; destroy it again later. And those of all
 calls that take a timer.

 The caller sees to this:
 `timer` leads to storage; no other thread uses the timer now or later.
 */
enum tickless_status_t tickless_timer_destroy(struct tickless_timer_t *timer);

/*
 Makes a periodic timer, not started, in its caller's memory. Allocates nothing, and starting
 one allocates only to choose a phase.

 It does not drift: an expiry is computed from the last one's deadline, never from when a
 callback happened to run. `options` may be null for the defaults. `callback` is called with
 `data` at each expiry, on a thread of the library; `tickless_fired_info` tells it how many
 expiries were missed, `tickless_fired_stop` ends it.

 Errors: `TICKLESS_NULL_POINTER` (for `timer`, `timers`, `callback`), `TICKLESS_MISALIGNED`,
 `TICKLESS_ALREADY_INITIALISED`, `TICKLESS_UNSUPPORTED`.

 The caller sees to this:
 `timer` leads to storage that nobody else uses now, and that outlives the timer; `timers` came
 from `tickless_timers_start` and was not stopped; `options` is null or leads to as many bytes
 as its `size` says.
 */
enum tickless_status_t tickless_periodic_init(struct tickless_periodic_t *timer,
                                              const struct tickless_timers_t *timers,
                                              const struct tickless_periodic_options_t *options,
                                              tickless_callback_t callback,
                                              void *data);

/*
 Starts a periodic timer, or starts it anew: first a period from now, or where its phase puts
 it, then every `period_ns`.

 Errors: `TICKLESS_OUT_OF_RANGE` if the period is not positive, or the phase not below it;
 `TICKLESS_SHUT` in the child of a fork; and those of all calls that take a timer:
 `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile.
 */
enum tickless_status_t tickless_periodic_start(const struct tickless_periodic_t *timer,
                                               int64_t period_ns);

/*
 Starts a periodic timer at a point in time, which fixes its phase, whatever its options say.

 Errors: as `tickless_periodic_start`.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile.
 */
enum tickless_status_t tickless_periodic_start_at(const struct tickless_periodic_t *timer,
                                                  uint64_t first_ns,
                                                  int64_t period_ns);

/*
 Stops a periodic timer without waiting for its callback: one that is running now is the last,
 whatever it asks for. `found` may be null.

 Errors: those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
 */
enum tickless_status_t tickless_periodic_cancel(const struct tickless_periodic_t *timer,
                                                enum tickless_cancel_t *found);

/*
 Stops a periodic timer and waits until its callback runs nowhere; as
 `tickless_timer_cancel_sync`, with its errors.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `found` is null or can be written.
 */
enum tickless_status_t tickless_periodic_cancel_sync(const struct tickless_periodic_t *timer,
                                                     enum tickless_cancel_t *found);

/*
 Is the timer running its periods?

 Errors: those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `is_active` can be written.
 */
enum tickless_status_t tickless_periodic_is_active(const struct tickless_periodic_t *timer,
                                                   bool *is_active);

/*
 How far behind the multiples of its period the timer expires, in nanoseconds;
 `TICKLESS_NEVER` unless it was started with a phase.

 Errors: those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `place_ns` can be written.
 */
enum tickless_status_t tickless_periodic_phase_offset(const struct tickless_periodic_t *timer,
                                                      uint64_t *place_ns);

/*
 Ends a periodic timer; as `tickless_timer_destroy`, with its errors, and like that also in the
 timer's own callback.

 The caller sees to this:
 `timer` leads to storage; no other thread uses the timer now or later.
 */
enum tickless_status_t tickless_periodic_destroy(struct tickless_periodic_t *timer);

/*
 What a clock shows, in nanoseconds. One system call, but for the monotonic one.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped; `now_ns` can be written.
 */
enum tickless_status_t tickless_timers_now_on(const struct tickless_timers_t *timers,
                                              uint32_t clock_number,
                                              uint64_t *now_ns);

/*
 Makes a timer on a clock of the program's choice, one of `TICKLESS_CLOCK_...`, not armed. When
 it fires `callback` is called with `data`, on a thread of the library. Allocates.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped; `timer` can be written.
 */
enum tickless_status_t tickless_clock_timer_create(const struct tickless_timers_t *timers,
                                                   uint32_t clock_number,
                                                   tickless_clock_callback_t callback,
                                                   void *data,
                                                   struct tickless_clock_timer_t **timer);

/*
 Arms a timer, or arms it anew, to fire `after_ns` from now: on boottime with the time of
 suspends, on the other clocks without it, and whatever the time of day is set to.

 Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_SHUT`, `TICKLESS_NULL_POINTER`,
 `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile.
 */
enum tickless_status_t tickless_clock_timer_start(const struct tickless_clock_timer_t *timer,
                                                  int64_t after_ns);

/*
 Arms a timer, or arms it anew, for a window on its own clock: not before `soft_ns`, and at
 `hard_ns` with a wakeup of its own. For a point in time both are the same. One that has passed
 fires at once.

 Errors: as `tickless_clock_timer_start`; `TICKLESS_OUT_OF_RANGE` if the window ends before it
 begins.

 The caller sees to this:
 `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile.
 */
enum tickless_status_t tickless_clock_timer_start_range(const struct tickless_clock_timer_t *timer,
                                                        uint64_t soft_ns,
                                                        uint64_t hard_ns);

/*
 Cancels a timer without waiting for its callback; as `tickless_timer_cancel`.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile; `found` is
 null or can be written.
 */
enum tickless_status_t tickless_clock_timer_cancel(const struct tickless_clock_timer_t *timer,
                                                   enum tickless_cancel_t *found);

/*
 Cancels a timer and waits until its callback runs nowhere; as `tickless_timer_cancel_sync`.

 Errors: `TICKLESS_WOULD_DEADLOCK` as there, `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile; `found` is
 null or can be written.
 */
enum tickless_status_t tickless_clock_timer_cancel_sync(const struct tickless_clock_timer_t *timer,
                                                        enum tickless_cancel_t *found);

/*
 Is the timer armed? May be out of date as soon as it is known.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `timer` came from `tickless_clock_timer_create` and nobody destroys it meanwhile; `is_pending`
 can be written.
 */
enum tickless_status_t tickless_clock_timer_is_pending(const struct tickless_clock_timer_t *timer,
                                                       bool *is_pending);

/*
 Ends a timer, waits until its callback is over, and frees it; null is nothing to do. In the
 timer's own callback it does not wait.

 Errors: `TICKLESS_WOULD_DEADLOCK` in another timer's callback that this one's callback waits
 for: the timer is shut down, and still there; destroy it again later.

 The caller sees to this:
 `timer` is null or came from `tickless_clock_timer_create` and was not destroyed; no other
 thread uses it now or later.
 */
enum tickless_status_t tickless_clock_timer_destroy(struct tickless_clock_timer_t *timer);

/*
 What the timer was armed for, and what its own clock shows; null where it is not wanted. The
 deadline is on its own clock, but on the timers' clock if it was armed for a duration on
 realtime.

 Errors: `TICKLESS_NULL_POINTER`.

 The caller sees to this:
 `fired` was handed to a callback that has not returned, on this thread; the rest can be written.
 */
enum tickless_status_t tickless_clock_fired_info(struct tickless_clock_fired_t *fired,
                                                 uint64_t *deadline_ns,
                                                 uint64_t *now_ns);

/*
 Has the timer armed again, `after_ns` from now, when the callback is over; as
 `tickless_fired_restart`.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`.

 The caller sees to this:
 `fired` is as for `tickless_clock_fired_info`.
 */
enum tickless_status_t tickless_clock_fired_restart(struct tickless_clock_fired_t *fired,
                                                    int64_t after_ns);

/*
 The same for a point in time on its own clock.

 Errors: `TICKLESS_NULL_POINTER`.

 The caller sees to this:
 `fired` is as for `tickless_clock_fired_info`.
 */
enum tickless_status_t tickless_clock_fired_restart_at(struct tickless_clock_fired_t *fired,
                                                       uint64_t deadline_ns);

/*
 The same whole periods of its own clock after its own deadline, at the first such moment that
 has not passed. `overruns`, which may be null, receives how many were missed. When the clock
 goes back nothing fires until it has come up to the next moment.

 Errors: `TICKLESS_NULL_POINTER`; `TICKLESS_OUT_OF_RANGE` if the period is not positive.

 The caller sees to this:
 `fired` is as for `tickless_clock_fired_info`; `overruns` is null or can be written.
 */
enum tickless_status_t tickless_clock_fired_forward(struct tickless_clock_fired_t *fired,
                                                    int64_t period_ns,
                                                    uint64_t *overruns);

/*
 Makes a limiter: `quota` permits in every period. Allocates. Destroy it before the timers are
 stopped.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`; `TICKLESS_OUT_OF_RANGE` if no limiter
 can be like this; `TICKLESS_SHUT` in the child of a fork.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped; `quota` leads to as many bytes as
 its `size` says; `made` can be written.
 */
enum tickless_status_t tickless_limiter_create(const struct tickless_timers_t *timers,
                                               const struct tickless_quota_t *quota,
                                               struct tickless_limiter_t **made);

/*
 Takes permits if they are there. Never waits; while they last, no lock and no system call.

 Errors: `TICKLESS_EMPTY` if there are too few now, or others wait for them;
 `TICKLESS_OUT_OF_RANGE` if there are never so many; `TICKLESS_SHUT` once it is closed, and in
 the child of a fork;
 `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `from` came from `tickless_limiter_create` and nobody destroys it meanwhile.
 */
enum tickless_status_t tickless_limiter_try_acquire(const struct tickless_limiter_t *from,
                                                    uint64_t permits);

/*
 Takes permits as soon as they are there, in line with others, and blocks the thread until then,
 for `timeout_ns` at most; `INT64_MAX` is for ever. Not for callbacks: it holds up their timers.

 Errors: `TICKLESS_TIMED_OUT`; the others, which come at once, as `tickless_limiter_try_acquire`.

 The caller sees to this:
 `from` came from `tickless_limiter_create` and nobody destroys it meanwhile.
 */
enum tickless_status_t tickless_limiter_acquire(const struct tickless_limiter_t *from,
                                                uint64_t permits,
                                                int64_t timeout_ns);

/*
 Closes a limiter, for a shutdown: from now on every call fails with `TICKLESS_SHUT`, and so do
 those that wait, at once. A second call does nothing.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `from` came from `tickless_limiter_create` and nobody destroys it meanwhile.
 */
enum tickless_status_t tickless_limiter_close(const struct tickless_limiter_t *from);

/*
 How many permits are there now, and what has happened. Either pointer may be null.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`, `TICKLESS_UNSUPPORTED`.

 The caller sees to this:
 `from` came from `tickless_limiter_create` and nobody destroys it meanwhile; `counts` is null or
 leads to as many bytes as its `size` says.
 */
enum tickless_status_t tickless_limiter_look(const struct tickless_limiter_t *from,
                                             uint64_t *available,
                                             struct tickless_quota_counts_t *counts);

/*
 Frees a limiter; null is nothing to do.

 Errors: `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `from` is null or came from `tickless_limiter_create` and was not destroyed; nobody uses it now
 or later.
 */
enum tickless_status_t tickless_limiter_destroy(struct tickless_limiter_t *from);

/*
 Makes a limiter for each key: so many permits in every period, which begins when the key is
 first used. A key takes some 60 bytes beside itself until it has all its permits again.

 Errors: as `tickless_limiter_create`.

 The caller sees to this:
 As for `tickless_limiter_create`.
 */
enum tickless_status_t tickless_keyed_create(const struct tickless_timers_t *timers,
                                             const struct tickless_quota_t *quota,
                                             struct tickless_keyed_t **made);

/*
 Takes a key's permits if they are there. Never waits for them. `key` leads to `key_size` bytes,
 of which the library keeps a copy.

 Errors: as `tickless_limiter_try_acquire`.

 The caller sees to this:
 `from` came from `tickless_keyed_create` and nobody destroys it meanwhile; `key` leads to so
 many bytes.
 */
enum tickless_status_t tickless_keyed_try_acquire(const struct tickless_keyed_t *from,
                                                  const uint8_t *key,
                                                  size_t key_size,
                                                  uint64_t permits);

/*
 How many keys there are; `TICKLESS_NULL_POINTER` for a null result. With `forget_idle` those
 that have all their permits are removed first, which also happens by itself as keys are added.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `from` came from `tickless_keyed_create` and nobody destroys it meanwhile; `keys` can be
 written.
 */
enum tickless_status_t tickless_keyed_count(const struct tickless_keyed_t *from,
                                            bool forget_idle,
                                            size_t *keys);

/*
 Frees a keyed limiter; null is nothing to do.

 Errors: `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `from` is null or came from `tickless_keyed_create` and was not destroyed; nobody uses it now or
 later.
 */
enum tickless_status_t tickless_keyed_destroy(struct tickless_keyed_t *from);

/*
 Makes a group of threads that may use `quota` nanoseconds of CPU time in every period, all
 together. Allocates. Destroy it before the timers are stopped.

 Errors: as `tickless_limiter_create`.

 The caller sees to this:
 As for `tickless_limiter_create`.
 */
enum tickless_status_t tickless_throttle_create(const struct tickless_timers_t *timers,
                                                const struct tickless_quota_t *quota,
                                                struct tickless_throttle_t **made);

/*
 What has happened. Workers report what they use when their slice is used up, 5 ms at most.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`, `TICKLESS_UNSUPPORTED`.

 The caller sees to this:
 `group` came from `tickless_throttle_create` and nobody destroys it meanwhile; `counts` leads to
 as many bytes as its `size` says.
 */
enum tickless_status_t tickless_throttle_look(const struct tickless_throttle_t *group,
                                              struct tickless_quota_counts_t *counts);

/*
 Frees a throttle; null is nothing to do. Its workers go on, throttled, until they leave.

 Errors: `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `group` is null or came from `tickless_throttle_create` and was not destroyed; nobody uses it
 now or later.
 */
enum tickless_status_t tickless_throttle_destroy(struct tickless_throttle_t *group);

/*
 Makes the calling thread a worker of a throttle. What it used before is not charged.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`, `TICKLESS_SHUT`.

 The caller sees to this:
 `group` came from `tickless_throttle_create` and nobody destroys it meanwhile; `worker` can be
 written.
 */
enum tickless_status_t tickless_throttle_join(const struct tickless_throttle_t *group,
                                              struct tickless_worker_t **worker);

/*
 May this thread go on? Parks it, if the quota of this period is used up, until it may; `waited`,
 which may be null, says whether it had to. To be called in a loop, between two pieces of work:
 the thread uses more than the quota by one piece at most, and pays that back. One system call of
 some 100 ns.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`, `TICKLESS_SHUT`.

 The caller sees to this:
 `worker` came from `tickless_throttle_join` and has not left; `waited` is null or can be
 written.
 */
enum tickless_status_t tickless_worker_check(struct tickless_worker_t *worker, bool *waited);

/*
 Gives back what the thread has not used of its slice: before it rests for long while others of
 its group work.

 Errors: as `tickless_worker_check`.

 The caller sees to this:
 `worker` came from `tickless_throttle_join` and has not left.
 */
enum tickless_status_t tickless_worker_rest(struct tickless_worker_t *worker);

/*
 Ends the thread's part, and gives back what it has not used; null is nothing to do.

 Errors: `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `worker` is null or came from `tickless_throttle_join` and has not left; nobody uses it later.
 */
enum tickless_status_t tickless_worker_leave(struct tickless_worker_t *worker);

/*
 Names a timer for `tickless_timers_list`: "http idle", say. Takes a lock, and allocates. The
 library keeps a copy of each different text, for good: name kinds of timers, not single ones.

 Errors: `TICKLESS_NULL_POINTER`; `TICKLESS_UNSUPPORTED` if it is not UTF-8; `TICKLESS_FULL`
 after 65,536 different ones; and those of all calls that take a timer.

 The caller sees to this:
 `timer` leads to storage that nobody destroys meanwhile; `label` to a text with a zero at its
 end.
 */
enum tickless_status_t tickless_timer_label(const struct tickless_timer_t *timer,
                                            const char *label);

/*
 The same for a periodic timer.

 Errors: as `tickless_timer_label`.

 The caller sees to this:
 As for `tickless_timer_label`.
 */
enum tickless_status_t tickless_periodic_label(const struct tickless_periodic_t *timer,
                                               const char *label);

/*
 Writes a text for people into `text`, which has room for `room` bytes: every pending timer, base
 by base, with whose it is and when it is due. It is cut where the room ends, and ends with a
 zero unless there is no room at all. `needed`, which may be null, receives how many bytes all of
 it takes, the zero included. O(pending), each base held up for at most 64 timers at a time.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped; `text` leads to `room` bytes that
 can be written; `needed` is null or can be written.
 */
enum tickless_status_t tickless_timers_list(const struct tickless_timers_t *timers,
                                            char *text,
                                            size_t room,
                                            size_t *needed);

/*
 Starts timers on `count` bases without any thread of the library: `loops` receives a loop for
 each, to be run by the program. For one loop, `count` is 1 and `loops` the address of one
 pointer. `options` may be null; its `bases` must be 0 or `count`, and what concerns threads of
 the library (deferral, pinned drivers) is ignored.

 Arming a timer that is due before all others of its base is one system call; nothing else is
 one. `TICKLESS_PIN(base)` keeps a timer in the loop of that number.

 Stop the timers first, then destroy the loops.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE` for a count of
 0 or beyond 65,535, `TICKLESS_NO_DESCRIPTOR`.

 The caller sees to this:
 `options` is null or leads to as many readable bytes as its `size` says; `timers` can be
 written, and `count` pointers at `loops`.
 */
enum tickless_status_t tickless_timers_start_in_loops(const struct tickless_options_t *options,
                                                      uint32_t count,
                                                      struct tickless_timers_t **timers,
                                                      struct tickless_loop_t **loops);

/*
 The descriptor to poll: readable when there is something to do, and not otherwise. For poll,
 select, epoll in either way of triggering, and what stands on them. Not to be read, set or
 closed. May be asked for by any thread.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.

 The caller sees to this:
 `one` came from `tickless_timers_start_in_loops` and was not destroyed; `descriptor` can be
 written.
 */
enum tickless_status_t tickless_loop_fd(const struct tickless_loop_t *one, int *descriptor);

/*
 Runs what is due. `fired`, which may be null, receives how many timers fired. Costs a clock
 reading if nothing is due, so it may be called more often than the descriptor asks for.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of this.

 The caller sees to this:
 `one` came from `tickless_timers_start_in_loops` and was not destroyed; `fired` is null or can
 be written.
 */
enum tickless_status_t tickless_loop_run(struct tickless_loop_t *one, uint64_t *fired);

/*
 For a loop that waits by a timeout: how long it may, in nanoseconds, from now;
 `TICKLESS_NEVER` if nothing is pending, 0 if something is due. Round it up. While the loop waits
 the descriptor still has to be polled, as a timer may be armed that is due earlier. No system
 call.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback.

 The caller sees to this:
 `one` came from `tickless_timers_start_in_loops` and was not destroyed; `timeout_ns` can be
 written.
 */
enum tickless_status_t tickless_loop_timeout(struct tickless_loop_t *one, uint64_t *timeout_ns);

/*
 Makes the calling thread the one that runs this loop. The thread before it must be done with it,
 and have said so, by a lock or a join.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_BUSY` in a callback.

 The caller sees to this:
 `one` came from `tickless_timers_start_in_loops` and was not destroyed; nobody uses it
 meanwhile.
 */
enum tickless_status_t tickless_loop_adopt(struct tickless_loop_t *one);

/*
 Ends a loop, and closes its descriptor; null is nothing to do. Take the descriptor out of what
 polls it first. Timers of its base never fire from now on.

 Errors: `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback.

 The caller sees to this:
 `one` is null or came from `tickless_timers_start_in_loops` and was not destroyed; nobody uses
 it later.
 */
enum tickless_status_t tickless_loop_destroy(struct tickless_loop_t *one);

/*
 Starts timers on a clock that stands at `now_ns` until `tickless_virtual_advance` moves it: for
 tests of code that waits. No thread; callbacks run inside of the call that moves the clock, in
 order of expiry, each at exactly the time at which its timer comes due. `options` may be null
 for the defaults with one base. Everything else works as with other timers.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_OUT_OF_RANGE`.

 The caller sees to this:
 `options` is null or leads to as many readable bytes as its `size` says; `timers` can be
 written.
 */
enum tickless_status_t tickless_timers_start_virtual(const struct tickless_options_t *options,
                                                     uint64_t now_ns,
                                                     struct tickless_timers_t **timers);

/*
 Moves the clock on, from one expiry to the next, and runs what comes due. In a callback of these
 timers it only moves the clock: the callback takes so long.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`; `TICKLESS_UNSUPPORTED` if the timers
 were not started by `tickless_timers_start_virtual`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped.
 */
enum tickless_status_t tickless_virtual_advance(const struct tickless_timers_t *timers,
                                                int64_t by_ns);

/*
 The same up to a point in time. A point that has passed runs only what is overdue.

 Errors: as `tickless_virtual_advance`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped.
 */
enum tickless_status_t tickless_virtual_advance_to(const struct tickless_timers_t *timers,
                                                   uint64_t to_ns);

/*
 Moves the clock to the next expiry, and runs all that this instant brings about. `has_fired`,
 which may be null, is false if nothing was pending that would ever fire by itself.

 Errors: as `tickless_virtual_advance`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped; `has_fired` is null or can be
 written.
 */
enum tickless_status_t tickless_virtual_advance_to_next(const struct tickless_timers_t *timers,
                                                        bool *has_fired);

/*
 When the next timer comes due; `TICKLESS_NEVER` if nothing is pending that would fire by itself.

 Errors: as `tickless_virtual_advance`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped; `next_ns` can be written.
 */
enum tickless_status_t tickless_virtual_next_event(const struct tickless_timers_t *timers,
                                                   uint64_t *next_ns);

/*
 Sets the time of day, in nanoseconds since 1970, forwards or backwards, and runs what comes due
 by that. It begins at 2000-01-01. No other clock moves.

 Errors: as `tickless_virtual_advance`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped.
 */
enum tickless_status_t tickless_virtual_set_realtime(const struct tickless_timers_t *timers,
                                                     uint64_t to_ns);

/*
 The system is suspended for so long: boottime and the time of day go on, the clock that timers
 run on does not. Runs what has come due meanwhile.

 Errors: as `tickless_virtual_advance`.

 The caller sees to this:
 `timers` was handed out by the library and was not stopped.
 */
enum tickless_status_t tickless_virtual_suspend(const struct tickless_timers_t *timers,
                                                int64_t for_ns);

/*
 Makes local timers, at the time `now_ns` of whatever clock the loop has. `tick_ns` is the tick
 of coarse timers, 1,000 (1 us) to 1,000,000,000 (1 s), or 0 for 1 ms; `how` is one of
 `TICKLESS_PUSH_OUT_...`.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`, `TICKLESS_UNSUPPORTED`.

 The caller sees to this:
 `local` can be written.
 */
enum tickless_status_t tickless_local_create(uint64_t now_ns,
                                             uint64_t tick_ns,
                                             uint32_t how,
                                             struct tickless_local_t **local);

/*
 Frees local timers with all that is in them; null is nothing to do.

 Errors: `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of their advance.

 The caller sees to this:
 `local` is null or came from `tickless_local_create` and was not destroyed; nobody uses it
 later.
 */
enum tickless_status_t tickless_local_destroy(struct tickless_local_t *local);

/*
 Makes the calling thread the one that uses these local timers. The thread before it must be
 done with them, and have said so, by a lock or a join.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_BUSY` in a callback of their advance.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; nobody uses it meanwhile.
 */
enum tickless_status_t tickless_local_adopt(struct tickless_local_t *local);

/*
 Makes room for a timer, not armed: `TICKLESS_COARSE` or `TICKLESS_PRECISE`. `data` is handed to
 the callback when it fires. Allocates now and then; arming and cancelling never do.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`, `TICKLESS_FULL` (2^29 coarse or 2^31
 precise ones), `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `key` can be written.
 */
enum tickless_status_t tickless_local_insert(struct tickless_local_t *local,
                                             uint32_t kind,
                                             void *data,
                                             struct tickless_key_t *key);

/*
 Cancels a timer and takes it out; `data`, which may be null, receives what it was inserted
 with.

 Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `data` is null or can be
 written.
 */
enum tickless_status_t tickless_local_remove(struct tickless_local_t *local,
                                             struct tickless_key_t key,
                                             void **data);

/*
 Arms a timer, or arms it anew, earlier or later, to fire `after_ns` from what the last advance
 said. A loop that slept for long advances first.

 Errors: `TICKLESS_OUT_OF_RANGE`, `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`,
 `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed.
 */
enum tickless_status_t tickless_local_start(struct tickless_local_t *local,
                                            struct tickless_key_t key,
                                            int64_t after_ns);

/*
 Arms a timer, or arms it anew, for a window on the loop's clock: a precise timer causes no
 wakeup of its own before `hard_ns`, a coarse one takes `soft_ns` as its deadline. What has
 passed fires with the next advance.

 Errors: as `tickless_local_start`; `TICKLESS_OUT_OF_RANGE` if the window ends before it begins.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed.
 */
enum tickless_status_t tickless_local_start_range(struct tickless_local_t *local,
                                                  struct tickless_key_t key,
                                                  uint64_t soft_ns,
                                                  uint64_t hard_ns);

/*
 Cancels a timer. `was_pending` may be null.

 Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `was_pending` is null or can
 be written.
 */
enum tickless_status_t tickless_local_cancel(struct tickless_local_t *local,
                                             struct tickless_key_t key,
                                             bool *was_pending);

/*
 Is the timer pending? A key that finds nothing is no error here.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `is_pending` can be written.
 */
enum tickless_status_t tickless_local_is_pending(struct tickless_local_t *local,
                                                 struct tickless_key_t key,
                                                 bool *is_pending);

/*
 When to advance next, on the loop's clock; `TICKLESS_NEVER` if nothing is pending. May have
 passed. Never after the next timer comes due; before it where coarse timers were pushed out.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `next_ns` can be written.
 */
enum tickless_status_t tickless_local_next_event(struct tickless_local_t *local, uint64_t *next_ns);

/*
 Says what time it is, and calls `callback` for each timer that is due, of at most `budget`
 timers; 0 is no limit. What is left is first in line next time. What the callback arms for the
 past fires with the next advance, so this ends. A time before the last one counts as that.
 `fired`, which may be null, receives how many fired.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of this.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `fired` is null or can be
 written.
 */
enum tickless_status_t tickless_local_advance(struct tickless_local_t *local,
                                              uint64_t now_ns,
                                              size_t budget,
                                              tickless_local_callback_t callback,
                                              void *context,
                                              size_t *fired);

/*
 Makes room for so many timers of each kind, so that inserting them does not allocate.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`, `TICKLESS_FULL` for more than there
 can be.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed.
 */
enum tickless_status_t tickless_local_reserve(struct tickless_local_t *local, size_t timers);

/*
 What a timer was inserted with.

 Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `data` can be written.
 */
enum tickless_status_t tickless_local_data(struct tickless_local_t *local,
                                           struct tickless_key_t key,
                                           void **data);

/*
 How many timers there are, and how many of them are pending. Either pointer may be null.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; the others are null or can be
 written.
 */
enum tickless_status_t tickless_local_count(struct tickless_local_t *local,
                                            size_t *timers,
                                            size_t *pending);

/*
 Arms many timers, or arms them anew, each for its own deadline: cheaper than one at a time, as
 the next ones are fetched from memory meanwhile. Keys of timers that have been removed are
 passed over; `armed`, which may be null, receives how many were not.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `armings` leads to `count` of
 them; `armed` is null or can be written.
 */
enum tickless_status_t tickless_local_start_many(struct tickless_local_t *local,
                                                 const struct tickless_arming_t *armings,
                                                 size_t count,
                                                 size_t *armed);

/*
 Cancels many timers. `cancelled`, which may be null, receives how many were pending.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `keys` leads to `count` of
 them; `cancelled` is null or can be written.
 */
enum tickless_status_t tickless_local_cancel_many(struct tickless_local_t *local,
                                                  const struct tickless_key_t *keys,
                                                  size_t count,
                                                  size_t *cancelled);

/*
 Says what time it is, and writes the keys of the timers that are due into `keys`, in the order
 in which they fire; they are not pending any more. The fastest way to take many. Looks at no
 more than `room` timers, those that were cancelled included, so it may find none; where more are
 due `tickless_local_next_event` has passed, and the next call begins with them. Allocates if any
 fire.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_MISALIGNED`, `TICKLESS_WRONG_THREAD`;
 `TICKLESS_BUSY` in a callback of an advance.

 The caller sees to this:
 `local` came from `tickless_local_create` and was not destroyed; `keys` leads to room for as
 many as `room` says; `fired` can be written.
 */
enum tickless_status_t tickless_local_advance_into(struct tickless_local_t *local,
                                                   uint64_t now_ns,
                                                   struct tickless_key_t *keys,
                                                   size_t room,
                                                   size_t *fired);

/*
 Makes fixed timeouts without classes, at the time `now_ns` of whatever clock the loop has.

 Errors: `TICKLESS_NULL_POINTER`.

 The caller sees to this:
 `fixed` can be written.
 */
enum tickless_status_t tickless_fixed_create(uint64_t now_ns, struct tickless_fixed_t **fixed);

/*
 Frees fixed timeouts with all that is in them; null is nothing to do.

 Errors: `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of their advance.

 The caller sees to this:
 `fixed` is null or came from `tickless_fixed_create` and was not destroyed; nobody uses it
 later.
 */
enum tickless_status_t tickless_fixed_destroy(struct tickless_fixed_t *fixed);

/*
 Makes the calling thread the one that uses these fixed timeouts; as `tickless_local_adopt`.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_BUSY` in a callback of their advance.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed; nobody uses it meanwhile.
 */
enum tickless_status_t tickless_fixed_adopt(struct tickless_fixed_t *fixed);

/*
 Adds a class of timers that fire `after_ns` after they are started, and writes its number: they
 count from 0. A class takes 1 KiB.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`, `TICKLESS_FULL` (65,536 classes),
 `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed; `number` can be written.
 */
enum tickless_status_t tickless_fixed_add_class(struct tickless_fixed_t *fixed,
                                                int64_t after_ns,
                                                uint32_t *number);

/*
 Gives a class another duration, for timers that are pending too. It keeps its factor.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE`, also if there is no such class;
 `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed.
 */
enum tickless_status_t tickless_fixed_set_after(struct tickless_fixed_t *fixed,
                                                uint32_t number,
                                                int64_t after_ns);

/*
 Scales the duration of a class by a factor, for timers that are pending too: 0.5 halves it, 1 is
 as it was given. What is overdue by that fires with the next advance.

 Errors: as `tickless_fixed_set_after`; a factor must be a number from 0 on.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed.
 */
enum tickless_status_t tickless_fixed_scale(struct tickless_fixed_t *fixed,
                                            uint32_t number,
                                            double factor);

/*
 Makes room for a timer of a class, not started. `data` is handed to the callback when it fires.
 Allocates now and then; starting and cancelling never do.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_OUT_OF_RANGE` if there is no such class,
 `TICKLESS_FULL` (2^29 timers), `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed; `key` can be written.
 */
enum tickless_status_t tickless_fixed_insert(struct tickless_fixed_t *fixed,
                                             uint32_t number,
                                             void *data,
                                             struct tickless_key_t *key);

/*
 Cancels a timer and takes it out; `data`, which may be null, receives what it was inserted
 with.

 Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed; `data` is null or can be
 written.
 */
enum tickless_status_t tickless_fixed_remove(struct tickless_fixed_t *fixed,
                                             struct tickless_key_t key,
                                             void **data);

/*
 Starts a timer, or starts it again: it fires its class's duration after what the last advance
 said. One store if it is pending.

 Errors: `TICKLESS_NO_SUCH_TIMER`, `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed.
 */
enum tickless_status_t tickless_fixed_start(struct tickless_fixed_t *fixed,
                                            struct tickless_key_t key);

/*
 Cancels a timer. `was_pending` may be null.

 Errors: as `tickless_fixed_start`.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed; `was_pending` is null or can
 be written.
 */
enum tickless_status_t tickless_fixed_cancel(struct tickless_fixed_t *fixed,
                                             struct tickless_key_t key,
                                             bool *was_pending);

/*
 How many timers there are, and how many of them are pending. Either pointer may be null.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed; the others are null or can be
 written.
 */
enum tickless_status_t tickless_fixed_count(struct tickless_fixed_t *fixed,
                                            size_t *timers,
                                            size_t *pending);

/*
 When to advance next, on the loop's clock; `TICKLESS_NEVER` if nothing is pending. O(classes).
 Never after a timer must fire; before it where timers were started again.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed; `next_ns` can be written.
 */
enum tickless_status_t tickless_fixed_next_event(struct tickless_fixed_t *fixed, uint64_t *next_ns);

/*
 Says what time it is, and calls `callback` for each timer that is due, looking at `budget` of
 them at most; 0 is no limit. As `tickless_local_advance`.

 Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`; `TICKLESS_BUSY` in a callback of this.

 The caller sees to this:
 `fixed` came from `tickless_fixed_create` and was not destroyed; `fired` is null or can be
 written.
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

/* To be used with `|` in the kind of a timer: fires on this base only. */
#define TICKLESS_PIN(base) (TICKLESS_PINNED | ((uint32_t)(base) << 16))

/* See tickless_abi_check. */
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
