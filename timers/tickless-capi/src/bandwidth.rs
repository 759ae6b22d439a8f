//! Rate limiters (permits per period) and throttles (CPU time per period).

use crate::local_batches::caller_slice;
use crate::object::{
    Marked, Object, create, destroy, handles, on, optional_result_of, result_of, value,
};
use crate::one_thread::{OneThread, free, owned};
use crate::periodic::phase;
use crate::sized::{self, Grows};
use crate::status::{Outcome, Status, failure};
use crate::timers::{TimerSet, duration};
use std::time::Duration;
use tickless::bandwidth::{
    AcquireError, BandwidthBuilder, BandwidthError, Counts, KeyedLimiter, Limiter, Throttle, Worker,
};
use tickless::periodic::Phase;

/// The quota of every period: permits for a limiter, nanoseconds of CPU time for a throttle. Set
/// the whole struct to zero, then `size` to `sizeof(tickless_quota_t)`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quota {
    /// `sizeof(tickless_quota_t)`.
    pub size: usize,
    /// The quota of every period; at least 1. For a throttle at most one period for each CPU.
    pub quota: u64,
    /// The period, in nanoseconds; at least 1.
    pub period_ns: u64,
    /// How much unused quota is kept and can be used later, in addition to the quota of a period.
    pub extra: u64,
    /// How late a refill is allowed to be, in nanoseconds, to share a wakeup. Default: a thousandth
    /// of the period, and up to a tenth if hundreds of limiters or throttles have this period.
    pub slack_ns: u64,
    /// Used with `TICKLESS_PHASE_RANDOM` and `TICKLESS_PHASE_FIXED`; otherwise zero.
    pub phase_value: u64,
    /// After a refill, waiting threads are released `release_batch` at a time, `release_gap_ns`
    /// apart. Default: values that suit the period.
    pub release_gap_ns: u64,
    /// See `release_gap_ns`; `UINT32_MAX` releases all at once.
    pub release_batch: u32,
    /// When in its period the quota is refilled: one of `TICKLESS_PHASE_...`. Default: spread.
    pub phase: u32,
    /// The most threads that a limiter lets wait: further calls of `tickless_limiter_acquire` that
    /// would have to wait return `TICKLESS_EMPTY`. Default: any number. Zero for a throttle.
    pub waiting_max: u64,
}

// SAFETY: integers without padding, a size first.
unsafe impl Grows for Quota {}

impl Quota {
    /// Applies the options of C to a builder. A zero keeps the default.
    fn apply<T>(&self, mut builder: BandwidthBuilder<T>) -> Outcome<BandwidthBuilder<T>> {
        let phase = phase(self.phase, self.phase_value)?;
        builder = builder.phase(phase.unwrap_or(Phase::Spread));
        if self.slack_ns > 0 {
            builder = builder.slack(Duration::from_nanos(self.slack_ns));
        }
        if self.release_batch > 0 {
            let gap = Duration::from_nanos(self.release_gap_ns);
            builder = builder.release(self.release_batch, gap);
        }
        Ok(builder)
    }

    fn limiter(&self, timers: &tickless::Timers) -> Outcome<BandwidthBuilder<Limiter>> {
        let made = timers.limiter(self.quota, Duration::from_nanos(self.period_ns));
        let made = self.apply(made.extra(self.extra))?;
        Ok(if self.waiting_max > 0 { made.waiting_max(self.waiting_max as usize) } else { made })
    }
}

/// Counters of a limiter or a throttle, in permits or in nanoseconds of CPU time. Set `size` before
/// the call.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuotaCounts {
    /// `sizeof(tickless_quota_counts_t)`.
    pub size: usize,
    /// The quota that has been used.
    pub used: u64,
    /// The quota that refills have added.
    pub refilled: u64,
    /// The quota that refills have discarded because more was left than is kept for later.
    pub expired: u64,
    /// The number of refills.
    pub refills: u64,
    /// How often a caller had to wait.
    pub throttled: u64,
    /// The total time that callers waited, in nanoseconds.
    pub waited_ns: u64,
    /// The number of callers that wait now.
    pub waiting: u64,
}

// SAFETY: integers without padding, a size first.
unsafe impl Grows for QuotaCounts {}

impl QuotaCounts {
    fn of(counts: &Counts, waiting: usize) -> QuotaCounts {
        let word = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        QuotaCounts {
            size: size_of::<QuotaCounts>(),
            used: word(counts.used),
            refilled: word(counts.refilled),
            expired: word(counts.expired),
            refills: counts.refills,
            throttled: counts.throttled,
            waited_ns: counts.waited.as_nanos() as u64,
            waiting: waiting as u64,
        }
    }
}

fn bandwidth_status(error: BandwidthError) -> Status {
    let status = match error {
        BandwidthError::NoTimers => Status::Shut,
        _ => Status::OutOfRange,
    };
    failure(status, error)
}

/// A fixed number of permits in every period, granted in the order of the requests; created by
/// `tickless_limiter_create`. Opaque. All threads may use it.
pub struct LimiterHandle(Marked<Limiter>);

/// A limiter for each key, for example each address or user; created by `tickless_keyed_create`.
/// Opaque. All threads may use it.
pub struct KeyedHandle(Marked<KeyedLimiter<Vec<u8>>>);

/// A group of threads that share a fixed amount of CPU time in every period; created by
/// `tickless_throttle_create`. Opaque. All threads may use it.
pub struct ThrottleHandle(Marked<Throttle>);

handles! {
    LimiterHandle(Limiter), 0x6c69_6d69_7465_7220,
        "limiter; pass a pointer from tickless_limiter_create", value => &'a Limiter;
    KeyedHandle(KeyedLimiter<Vec<u8>>), 0x6b65_7965_646c_696d,
        "keyed limiter; pass a pointer from tickless_keyed_create",
        value => &'a KeyedLimiter<Vec<u8>>;
    ThrottleHandle(Throttle), 0x7468_726f_7474_6c65,
        "throttle; pass a pointer from tickless_throttle_create", value => &'a Throttle;
    WorkerHandle(OneThread<Worker>), 0x776f_726b_6572_2020,
        "worker; call tickless_throttle_join in each thread", owned => &'a mut Worker;
}

fn acquire_status(error: AcquireError) -> Status {
    let status = match error {
        AcquireError::Empty | AcquireError::QueueFull => Status::Empty,
        AcquireError::NeverEnough { .. } => Status::OutOfRange,
        AcquireError::TimedOut => Status::TimedOut,
        _ => Status::Shut,
    };
    failure(status, error)
}

/// Creates a limiter with `quota` permits in every period. Allocates. Destroy it before the timers
/// are stopped.
///
/// Errors: `TICKLESS_UNSUPPORTED`; `TICKLESS_OUT_OF_RANGE` if a field of the quota is out of range;
/// `TICKLESS_SHUT` in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_create(
    timers: *const TimerSet,
    quota: *const Quota,
    made: *mut *mut LimiterHandle,
) -> Status {
    create(made, || {
        let timers = &TimerSet::lend(timers)?.timers;
        required_quota(quota)?.limiter(timers)?.start().map_err(bandwidth_status)
    })
}

/// Reads a caller's quota. Null is an error, because a quota has no default.
///
/// # Safety
/// As for [`sized::read`].
unsafe fn required_quota(quota: *const Quota) -> Outcome<Quota> {
    if quota.is_null() {
        return Err(failure(Status::NullPointer, "the pointer to the quota is null"));
    }
    // SAFETY: the caller promises that `quota` is null or points to as many readable bytes as its
    // `size` states.
    unsafe { sized::read(quota) }
}

/// Acquires permits if they are available. Never waits; while permits are available, it takes no
/// lock and makes no system call.
///
/// Errors: `TICKLESS_EMPTY` if too few permits are left now, or other threads wait for them;
/// `TICKLESS_OUT_OF_RANGE` for more permits than there can ever be; `TICKLESS_SHUT` once the
/// limiter is closed, and in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_try_acquire(
    from: *const LimiterHandle,
    permits: u64,
) -> Status {
    on(from, |limiter| limiter.try_acquire(permits).map_err(acquire_status))
}

/// Reports how long it will take until `permits` are available, in nanoseconds; 0 if they are
/// available now. The time includes the permits that other threads wait for now, but not those of
/// later requests. A server that refuses a request sends this time, rounded up to seconds, as
/// `Retry-After`.
///
/// Errors: those of `tickless_limiter_try_acquire` except `TICKLESS_EMPTY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_retry_after(
    from: *const LimiterHandle,
    permits: u64,
    after_ns: *mut u64,
) -> Status {
    result_of(from, after_ns, |limiter| in_ns(limiter.retry_after(permits)))
}

fn in_ns(after: Result<Duration, AcquireError>) -> Outcome<u64> {
    let after = after.map_err(acquire_status)?;
    Ok(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX))
}

/// Acquires permits, and blocks the thread until they are available and all earlier requests are
/// served, for at most `timeout_ns`; `INT64_MAX` waits without a limit. Do not call it in a
/// callback: it would delay other timers.
///
/// Errors: `TICKLESS_TIMED_OUT`; and those of `tickless_limiter_try_acquire`, which are returned
/// without waiting for the timeout. `TICKLESS_EMPTY` means that as many threads wait as the quota's
/// `waiting_max` allows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_acquire(
    from: *const LimiterHandle,
    permits: u64,
    timeout_ns: i64,
) -> Status {
    on(from, |limiter| {
        let acquired = match timeout_ns {
            i64::MAX => limiter.blocking_acquire(permits),
            timeout => limiter.blocking_acquire_timeout(permits, duration(timeout)?),
        };
        acquired.map_err(acquire_status)
    })
}

/// Closes a limiter, for a shutdown: every later call returns `TICKLESS_SHUT`, and so do waiting
/// calls, at once. Closing it again does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_close(from: *const LimiterHandle) -> Status {
    on(from, |limiter| {
        limiter.close();
        Ok(())
    })
}

/// Reads how many permits are available now, and the counters. Either pointer may be null.
///
/// Errors: `TICKLESS_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_stats(
    from: *const LimiterHandle,
    available: *mut u64,
    counts: *mut QuotaCounts,
) -> Status {
    optional_result_of(from, available, |limiter| {
        if !counts.is_null() {
            sized::write(counts, &QuotaCounts::of(&limiter.counts(), limiter.waiting()))?;
        }
        Ok(limiter.available())
    })
}

/// Frees a limiter; does nothing if the pointer is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_destroy(from: *mut LimiterHandle) -> Status {
    destroy(from, |_| Ok(()))
}

/// Creates a limiter with `quota` permits for each key in every period. A key's period begins when
/// the key is first used. A key takes some 60 bytes in addition to its own bytes until it has all
/// its permits again.
///
/// Errors: those of `tickless_limiter_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_create(
    timers: *const TimerSet,
    quota: *const Quota,
    made: *mut *mut KeyedHandle,
) -> Status {
    create(made, || {
        let timers = &TimerSet::lend(timers)?.timers;
        required_quota(quota)?.limiter(timers)?.keyed().map_err(bandwidth_status)
    })
}

/// Acquires permits of a key if they are available. Never waits for permits. `key` points to
/// `key_size` bytes, which the library copies.
///
/// Errors: those of `tickless_limiter_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_try_acquire(
    from: *const KeyedHandle,
    key: *const u8,
    key_size: usize,
    permits: u64,
) -> Status {
    on(from, |limiter| {
        limiter.try_acquire(caller_slice(key, key_size)?, permits).map_err(acquire_status)
    })
}

/// Reports how long it will take until `permits` of a key are available, as
/// `tickless_limiter_retry_after` does.
///
/// Errors: those of `tickless_limiter_retry_after`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_retry_after(
    from: *const KeyedHandle,
    key: *const u8,
    key_size: usize,
    permits: u64,
    after_ns: *mut u64,
) -> Status {
    result_of(from, after_ns, |limiter| {
        in_ns(limiter.retry_after(caller_slice(key, key_size)?, permits))
    })
}

/// Counts the keys. With `forget_idle`, keys that have all their permits are removed first; adding
/// keys also removes them from time to time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_count(
    from: *const KeyedHandle,
    forget_idle: bool,
    keys: *mut usize,
) -> Status {
    result_of(from, keys, |limiter| {
        if forget_idle {
            limiter.remove_idle();
        }
        Ok(limiter.len())
    })
}

/// Frees a keyed limiter; does nothing if the pointer is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_destroy(from: *mut KeyedHandle) -> Status {
    destroy(from, |_| Ok(()))
}

/// Creates a group of threads that together may use `quota` nanoseconds of CPU time in every
/// period. Allocates. Destroy it before the timers are stopped.
///
/// Errors: those of `tickless_limiter_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_throttle_create(
    timers: *const TimerSet,
    quota: *const Quota,
    made: *mut *mut ThrottleHandle,
) -> Status {
    create(made, || {
        let timers = &TimerSet::lend(timers)?.timers;
        let quota = required_quota(quota)?;
        if quota.waiting_max > 0 {
            return Err(failure(Status::Unsupported, "only a limiter has a `waiting_max`"));
        }
        let [cpu, period, extra] =
            [quota.quota, quota.period_ns, quota.extra].map(Duration::from_nanos);
        let group = quota.apply(timers.throttle(cpu, period).extra(extra))?;
        group.start().map_err(bandwidth_status)
    })
}

/// Reads the counters. A worker takes quota in slices of at most 5 ms of CPU time, and its use is
/// counted when a slice is used up.
///
/// Errors: `TICKLESS_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_throttle_stats(
    group: *const ThrottleHandle,
    counts: *mut QuotaCounts,
) -> Status {
    on(group, |group| sized::write(counts, &QuotaCounts::of(&group.counts(), group.waiting())))
}

/// Frees a throttle; does nothing if the pointer is null. Its workers stay throttled until they
/// leave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_throttle_destroy(group: *mut ThrottleHandle) -> Status {
    destroy(group, |_| Ok(()))
}

/// One thread's membership in a throttle; created by `tickless_throttle_join`. Opaque. Only that
/// thread may use it.
pub struct WorkerHandle(Marked<OneThread<Worker>>);

/// Makes the calling thread a worker of a throttle. CPU time that it used before is not charged.
///
/// Errors: `TICKLESS_SHUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_throttle_join(
    group: *const ThrottleHandle,
    worker: *mut *mut WorkerHandle,
) -> Status {
    create(worker, || {
        let joined = ThrottleHandle::lend(group)?.join().map_err(acquire_status)?;
        Ok(OneThread::new::<WorkerHandle>(joined, ()))
    })
}

/// Parks the thread while the quota of this period is used up. `waited`, which may be null,
/// receives whether it parked. Call it in a loop, between two pieces of work: the thread exceeds
/// the quota by one piece at most, and that excess is charged to later periods. One system call of
/// some 100 ns.
///
/// Errors: `TICKLESS_SHUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_worker_check(
    worker: *mut WorkerHandle,
    waited: *mut bool,
) -> Status {
    optional_result_of(worker, waited, |own| own.check().map_err(acquire_status))
}

/// Gives back the unused rest of the thread's slice (the CPU time that it has taken from the
/// quota). Call it before the thread idles for long while other workers of its group run.
///
/// Errors: those of `tickless_worker_check`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_worker_rest(worker: *mut WorkerHandle) -> Status {
    on(worker, |own| own.rest().map_err(acquire_status))
}

/// Ends the thread's membership and gives back the unused rest of its slice; does nothing if the
/// pointer is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_worker_leave(worker: *mut WorkerHandle) -> Status {
    free(worker)
}
