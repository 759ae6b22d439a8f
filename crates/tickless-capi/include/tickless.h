/*
 * Tickless: Linux's timer subsystem for programs.
 *
 * Made from the sources of crates/tickless-capi by tests/header.rs; do not edit. How to build and
 * link: docs/c.md. C11 or later, C++11 or later (tickless.hpp: C++17); 64-bit Linux.
 *
 * Three sorts of timers, all with a callback:
 * - tickless_timer_t, coarse or precise, and tickless_periodic_t, in the caller's own memory. They
 *   belong to a tickless_timers_t, whose threads call the callbacks.
 * - timers of a tickless_local_t, for a loop of one's own: no threads, no locks, no clock.
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
 * Threads. Everything but local timers may be used from all threads at once, callbacks included,
 * except init, destroy and stop, which nobody else may overlap with on the same object. Callbacks
 * of one timer never overlap.
 *
 * Blocking. Only tickless_timers_start and _stop, the cancels named _sync and _single_shot,
 * shutdown_sync and destroy ever wait. In a callback, they wait only if that can end.
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
 A timer that fires, as its callback sees it. Opaque; good until the callback returns, and in
 the thread that runs it. Also good after the callback has destroyed its timer: what it asks
 for is ignored then.
 */
typedef struct tickless_fired_t tickless_fired_t;

/*
 Timers of one thread. Opaque. The loop asks when the next one is due, waits that long for its
 own events, says what time it is, and is called for each timer that fires.

 Used by the thread that created them, or the last one that adopted them; other threads are
 told so.
 */
typedef struct tickless_local_t tickless_local_t;

/*
 A set of timers: a base and a driver thread for each CPU. Opaque.

 May be used from all threads. In the child of a fork its timers count as shut down: nothing
 fires, arming is `TICKLESS_SHUT`, a cancel finds nothing, and destroying and stopping wait for
 nothing. A child may start timers of its own. A callback that forks must not return in the
 child.
 */
typedef struct tickless_timers_t tickless_timers_t;

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
   Pending timers that were armed anew.
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

 Errors: `TICKLESS_BUSY` as long as one of their timers is initialised: destroy those first.
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
enum tickless_status_t tickless_periodic_place(const struct tickless_periodic_t *timer,
                                               uint64_t *place_ns);

/*
 Ends a periodic timer; as `tickless_timer_destroy`, with its errors, and like that also in the
 timer's own callback.

 The caller sees to this:
 `timer` leads to storage; no other thread uses the timer now or later.
 */
enum tickless_status_t tickless_periodic_destroy(struct tickless_periodic_t *timer);

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
