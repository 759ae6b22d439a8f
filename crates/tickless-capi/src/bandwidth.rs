//! So many permits, or so much CPU time, in every period.

use crate::one_thread::{Handle, OneThread, Sort};
use crate::options::unknown;
use crate::periodic::{
    TICKLESS_PHASE_ALIGNED, TICKLESS_PHASE_FIXED, TICKLESS_PHASE_NONE, TICKLESS_PHASE_RANDOM,
    TICKLESS_PHASE_SPREAD,
};
use crate::sized::{self, Grows};
use crate::status::{Outcome, Status, answer, entry, failure, put};
use crate::timers::{TimerSet, duration, handed_out, none_here, set};
use core::ptr::NonNull;
use std::time::Duration;
use tickless::bandwidth::{
    AcquireError, BandwidthError, Checked, Counts, KeyedLimiter, Limiter, LimiterBuilder, Release,
    Throttle, ThrottleError, Worker,
};
use tickless::periodic::Phase;

/// How much there is in every period, for a limiter in permits, for a throttle in nanoseconds of
/// CPU time. Set all of it to zero, then `size` to `sizeof(tickless_quota_t)`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quota {
    /// `sizeof(tickless_quota_t)`.
    pub size: usize,
    /// So much in every period; at least 1. For a throttle at most a period for each CPU.
    pub quota: u64,
    /// The period, in nanoseconds; at least 1.
    pub period_ns: u64,
    /// So much of what a period leaves over may be used later, on top of a period's own.
    pub extra: u64,
    /// How late a refill may be to share a wakeup, in nanoseconds. Default: a thousandth of the
    /// period, and up to a tenth if there are hundreds of the same period.
    pub slack_ns: u64,
    /// See `TICKLESS_PHASE_RANDOM` and `TICKLESS_PHASE_FIXED`; otherwise zero.
    pub phase_value: u64,
    /// After a refill those that wait are let go `release_batch` at a time, `release_gap_ns`
    /// apart. Default: both as suits the period.
    pub release_gap_ns: u64,
    /// See `release_gap_ns`; `UINT32_MAX` lets all go at once.
    pub release_batch: u32,
    /// Where in its period it is refilled: one of `TICKLESS_PHASE_...`. Default: spread.
    pub phase: u32,
}

// SAFETY: integers without padding, a size first.
unsafe impl Grows for Quota {}

impl Quota {
    fn phase(&self) -> Outcome<Phase> {
        Ok(match (self.phase, self.phase_value) {
            (TICKLESS_PHASE_NONE | TICKLESS_PHASE_SPREAD, 0) => Phase::Spread,
            (TICKLESS_PHASE_ALIGNED, 0) => Phase::Aligned,
            (TICKLESS_PHASE_RANDOM, seed) => Phase::Random(seed),
            (TICKLESS_PHASE_FIXED, phase) => Phase::Fixed(Duration::from_nanos(phase)),
            _ => return Err(unknown("phase")),
        })
    }

    fn slack(&self) -> Option<Duration> {
        (self.slack_ns > 0).then(|| Duration::from_nanos(self.slack_ns))
    }

    fn release(&self) -> Option<Release> {
        let gap = Duration::from_nanos(self.release_gap_ns);
        (self.release_batch > 0).then_some(Release { batch: self.release_batch, gap })
    }

    /// As a limiter on these timers.
    fn limiter(&self, timers: &tickless::Timers) -> Outcome<LimiterBuilder> {
        let made = timers.limiter(self.quota, Duration::from_nanos(self.period_ns));
        let made = made.extra(self.extra).phase(self.phase()?);
        let made = self.slack().into_iter().fold(made, LimiterBuilder::slack);
        Ok(self.release().into_iter().fold(made, LimiterBuilder::release))
    }
}

/// What has happened to a limiter or a throttle. Set `size` before asking. In permits, or in
/// nanoseconds of CPU time.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuotaCounts {
    /// `sizeof(tickless_quota_counts_t)`.
    pub size: usize,
    /// What has been used.
    pub used: u64,
    /// What refills have brought.
    pub refilled: u64,
    /// What they brought beyond what may be kept.
    pub expired: u64,
    /// Refills.
    pub refills: u64,
    /// How often somebody had to wait.
    pub throttled: u64,
    /// How long they waited all together, in nanoseconds.
    pub waited_ns: u64,
    /// How many wait now.
    pub waiting: u64,
}

// SAFETY: words, a size first.
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

fn refused(error: BandwidthError) -> Status {
    let status = match error {
        BandwidthError::Settings(_) | BandwidthError::Phase(_) => Status::OutOfRange,
        _ => Status::Shut,
    };
    failure(status, error)
}

/// Something that is handed out with a mark.
struct Marked<T> {
    mark: u64,
    value: T,
}

/// What is handed out with a mark of its own.
trait HandedOut {
    const MARK: u64;
    const NAME: &'static str;
}

impl HandedOut for Limiter {
    const MARK: u64 = 0x6c69_6d69_7465_7220;
    const NAME: &'static str = "limiter; pass what tickless_limiter_create handed out";
}

impl HandedOut for KeyedLimiter<Vec<u8>> {
    const MARK: u64 = 0x6b65_7965_646c_696d;
    const NAME: &'static str = "keyed limiter; pass what tickless_keyed_create handed out";
}

impl HandedOut for Throttle {
    const MARK: u64 = 0x7468_726f_7474_6c65;
    const NAME: &'static str = "throttle; pass what tickless_throttle_create handed out";
}

impl<T: HandedOut> Marked<T> {
    fn new(value: T) -> Marked<T> {
        Marked { mark: T::MARK, value }
    }

    fn look(&self) -> Outcome<&T> {
        if self.mark == T::MARK { Ok(&self.value) } else { Err(none_here(T::NAME)) }
    }
}

/// Permits, so many in every period, first come, first served; from `tickless_limiter_create`.
/// Opaque. May be used from all threads.
pub struct LimiterHandle(Marked<Limiter>);

/// The same for each key apart, addresses or users; from `tickless_keyed_create`. Opaque. May be
/// used from all threads.
pub struct KeyedHandle(Marked<KeyedLimiter<Vec<u8>>>);

/// Threads that share so much CPU time in every period; from `tickless_throttle_create`. Opaque.
/// May be used from all threads.
pub struct ThrottleHandle(Marked<Throttle>);

macro_rules! handed_out {
    ($live:ident, $free:ident, $handle:ident, $value:ty) => {
        /// # Safety
        /// `at` is null or leads to something that is readable for as long as the result is used.
        unsafe fn $live<'a>(at: *const $handle) -> Outcome<&'a $value> {
            // SAFETY: as promised.
            unsafe { handed_out(at, <$value>::NAME) }?.0.look()
        }

        /// Frees it; null is nothing to do.
        ///
        /// # Safety
        /// `at` is null, or came from `Box::into_raw` and was not freed; nobody uses it later.
        unsafe fn $free(at: *mut $handle) -> Outcome {
            let Some(place) = NonNull::new(at) else { return Ok(()) };
            // SAFETY: as promised. The mark goes first, so that a second time is noticed if the
            // memory is not used again at once.
            unsafe {
                $live(at)?;
                (&raw mut (*place.as_ptr()).0.mark).write_volatile(0);
                drop(Box::from_raw(place.as_ptr()));
            }
            Ok(())
        }
    };
}

handed_out!(limiter, free_limiter, LimiterHandle, Limiter);
handed_out!(keyed, free_keyed, KeyedHandle, KeyedLimiter<Vec<u8>>);
handed_out!(throttle, free_throttle, ThrottleHandle, Throttle);

fn acquired(result: Result<(), AcquireError>) -> Outcome {
    result.map_err(|error| {
        let status = match error {
            AcquireError::Empty => Status::Empty,
            AcquireError::NeverEnough { .. } => Status::OutOfRange,
            AcquireError::TimedOut => Status::TimedOut,
            _ => Status::Shut,
        };
        failure(status, error)
    })
}

/// Makes a limiter: `quota` permits in every period. Allocates. Destroy it before the timers are
/// stopped.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_UNSUPPORTED`; `TICKLESS_OUT_OF_RANGE` if no limiter
/// can be like this; `TICKLESS_SHUT` in the child of a fork.
///
/// # Safety
/// `timers` was handed out by the library and was not stopped; `quota` leads to as many bytes as
/// its `size` says; `made` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_create(
    timers: *const TimerSet,
    quota: *const Quota,
    made: *mut *mut LimiterHandle,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (timers, quota) = unsafe {
            answer(made, core::ptr::null_mut())?;
            (&set(timers)?.timers, given(quota)?)
        };
        let limiter = quota.limiter(timers)?.start().map_err(refused)?;
        let handle = Box::new(LimiterHandle(Marked::new(limiter)));
        // SAFETY: as promised.
        unsafe { answer(made, Box::into_raw(handle)) }
    })
}

/// A quota, which has no default.
///
/// # Safety
/// As for [`sized::read`].
unsafe fn given(quota: *const Quota) -> Outcome<Quota> {
    if quota.is_null() {
        return Err(failure(Status::NullPointer, "the pointer to the quota is null"));
    }
    // SAFETY: as promised.
    unsafe { sized::read(quota) }
}

/// Takes permits if they are there. Never waits; while they last, no lock and no system call.
///
/// Errors: `TICKLESS_EMPTY` if there are too few now, or others wait for them;
/// `TICKLESS_OUT_OF_RANGE` if there are never so many; `TICKLESS_SHUT` once it is closed, and in
/// the child of a fork;
/// `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `from` came from `tickless_limiter_create` and nobody destroys it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_try_acquire(
    from: *const LimiterHandle,
    permits: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        acquired(unsafe { limiter(from) }?.try_acquire(permits))
    })
}

/// Takes permits as soon as they are there, in line with others, and blocks the thread until then,
/// for `timeout_ns` at most; `INT64_MAX` is for ever. Not for callbacks: it holds up their timers.
///
/// Errors: `TICKLESS_TIMED_OUT`; the others, which come at once, as `tickless_limiter_try_acquire`.
///
/// # Safety
/// `from` came from `tickless_limiter_create` and nobody destroys it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_acquire(
    from: *const LimiterHandle,
    permits: u64,
    timeout_ns: i64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let limiter = unsafe { limiter(from) }?;
        acquired(match timeout_ns {
            i64::MAX => limiter.blocking_acquire(permits),
            timeout => limiter.blocking_acquire_timeout(permits, duration(timeout)?),
        })
    })
}

/// Closes a limiter, for a shutdown: from now on every call fails with `TICKLESS_SHUT`, and so do
/// those that wait, at once. A second call does nothing.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `from` came from `tickless_limiter_create` and nobody destroys it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_close(from: *const LimiterHandle) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { limiter(from) }?.close();
        Ok(())
    })
}

/// How many permits are there now, and what has happened. Either pointer may be null.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`, `TICKLESS_UNSUPPORTED`.
///
/// # Safety
/// `from` came from `tickless_limiter_create` and nobody destroys it meanwhile; `counts` is null or
/// leads to as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_look(
    from: *const LimiterHandle,
    available: *mut u64,
    counts: *mut QuotaCounts,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let limiter = unsafe { limiter(from) }?;
        // SAFETY: as promised.
        unsafe {
            put(available, limiter.available());
            tell(counts, &limiter.counts(), limiter.waiting())
        }
    })
}

/// # Safety
/// As for [`sized::write`].
unsafe fn tell(counts: *mut QuotaCounts, seen: &Counts, waiting: usize) -> Outcome {
    if counts.is_null() {
        return Ok(());
    }
    // SAFETY: as promised.
    unsafe { sized::write(counts, &QuotaCounts::of(seen, waiting)) }
}

/// Frees a limiter; null is nothing to do.
///
/// Errors: `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `from` is null or came from `tickless_limiter_create` and was not destroyed; nobody uses it now
/// or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_limiter_destroy(from: *mut LimiterHandle) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { free_limiter(from) })
}

/// Makes a limiter for each key: so many permits in every period, which begins when the key is
/// first used. A key takes some 60 bytes beside itself until it has all its permits again.
///
/// Errors: as `tickless_limiter_create`.
///
/// # Safety
/// As for `tickless_limiter_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_create(
    timers: *const TimerSet,
    quota: *const Quota,
    made: *mut *mut KeyedHandle,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (timers, quota) = unsafe {
            answer(made, core::ptr::null_mut())?;
            (&set(timers)?.timers, given(quota)?)
        };
        let limiter = quota.limiter(timers)?.keyed().map_err(refused)?;
        let handle = Box::new(KeyedHandle(Marked::new(limiter)));
        // SAFETY: as promised.
        unsafe { answer(made, Box::into_raw(handle)) }
    })
}

/// Takes a key's permits if they are there. Never waits for them. `key` leads to `key_size` bytes,
/// of which the library keeps a copy.
///
/// Errors: as `tickless_limiter_try_acquire`.
///
/// # Safety
/// `from` came from `tickless_keyed_create` and nobody destroys it meanwhile; `key` leads to so
/// many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_try_acquire(
    from: *const KeyedHandle,
    key: *const u8,
    key_size: usize,
    permits: u64,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (limiter, key) = unsafe { (keyed(from)?, crate::local_batches::row(key, key_size)?) };
        acquired(limiter.try_acquire(key, permits))
    })
}

/// How many keys there are; `TICKLESS_NULL_POINTER` for a null result. With `forget_idle` those
/// that have all their permits are removed first, which also happens by itself as keys are added.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `from` came from `tickless_keyed_create` and nobody destroys it meanwhile; `keys` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_count(
    from: *const KeyedHandle,
    forget_idle: bool,
    keys: *mut usize,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let limiter = unsafe { keyed(from) }?;
        if forget_idle {
            limiter.remove_idle();
        }
        // SAFETY: as promised.
        unsafe { answer(keys, limiter.len()) }
    })
}

/// Frees a keyed limiter; null is nothing to do.
///
/// Errors: `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `from` is null or came from `tickless_keyed_create` and was not destroyed; nobody uses it now or
/// later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_keyed_destroy(from: *mut KeyedHandle) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { free_keyed(from) })
}

/// Makes a group of threads that may use `quota` nanoseconds of CPU time in every period, all
/// together. Allocates. Destroy it before the timers are stopped.
///
/// Errors: as `tickless_limiter_create`.
///
/// # Safety
/// As for `tickless_limiter_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_throttle_create(
    timers: *const TimerSet,
    quota: *const Quota,
    made: *mut *mut ThrottleHandle,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let (timers, quota) = unsafe {
            answer(made, core::ptr::null_mut())?;
            (&set(timers)?.timers, given(quota)?)
        };
        let [cpu, period, extra] = [quota.quota, quota.period_ns, quota.extra];
        let group = timers.throttle(Duration::from_nanos(cpu), Duration::from_nanos(period));
        let group = group.extra(Duration::from_nanos(extra)).phase(quota.phase()?);
        let group = quota.slack().into_iter().fold(group, |group, slack| group.slack(slack));
        let group = quota.release().into_iter().fold(group, |group, how| group.release(how));
        let handle = Box::new(ThrottleHandle(Marked::new(group.start().map_err(refused)?)));
        // SAFETY: as promised.
        unsafe { answer(made, Box::into_raw(handle)) }
    })
}

/// What has happened. Workers report what they use when their slice is used up, 5 ms at most.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`, `TICKLESS_UNSUPPORTED`.
///
/// # Safety
/// `group` came from `tickless_throttle_create` and nobody destroys it meanwhile; `counts` leads to
/// as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_throttle_look(
    group: *const ThrottleHandle,
    counts: *mut QuotaCounts,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let group = unsafe { throttle(group) }?;
        // SAFETY: as promised.
        unsafe { sized::write(counts, &QuotaCounts::of(&group.counts(), group.waiting())) }
    })
}

/// Frees a throttle; null is nothing to do. Its workers go on, throttled, until they leave.
///
/// Errors: `TICKLESS_NOT_INITIALISED`.
///
/// # Safety
/// `group` is null or came from `tickless_throttle_create` and was not destroyed; nobody uses it
/// now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_throttle_destroy(group: *mut ThrottleHandle) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { free_throttle(group) })
}

/// One thread's part in a throttle; from `tickless_throttle_join`. Opaque. For that thread alone.
pub struct WorkerHandle {
    own: OneThread<Worker>,
}

impl Handle for WorkerHandle {
    type Value = Worker;
    const SORT: Sort = Sort {
        mark: 0x776f_726b_6572_2020,
        name: "workers",
        remedy: "a thread's CPU time is its own; join in each thread",
    };

    fn own(&self) -> &OneThread<Worker> {
        &self.own
    }
}

fn no_timers(error: ThrottleError) -> Status {
    failure(Status::Shut, error)
}

/// Makes the calling thread a worker of a throttle. What it used before is not charged.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_NOT_INITIALISED`, `TICKLESS_SHUT`.
///
/// # Safety
/// `group` came from `tickless_throttle_create` and nobody destroys it meanwhile; `worker` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_throttle_join(
    group: *const ThrottleHandle,
    worker: *mut *mut WorkerHandle,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { answer(worker, core::ptr::null_mut()) }?;
        // SAFETY: as promised.
        let joined = unsafe { throttle(group) }?.join().map_err(no_timers)?;
        let handle = Box::new(WorkerHandle { own: OneThread::new(&WorkerHandle::SORT, joined) });
        // SAFETY: as promised.
        unsafe { answer(worker, Box::into_raw(handle)) }
    })
}

/// May this thread go on? Parks it, if the quota of this period is used up, until it may; `waited`,
/// which may be null, says whether it had to. To be called in a loop, between two pieces of work:
/// the thread uses more than the quota by one piece at most, and pays that back. One system call of
/// some 100 ns.
///
/// Errors: `TICKLESS_NULL_POINTER`, `TICKLESS_WRONG_THREAD`, `TICKLESS_SHUT`.
///
/// # Safety
/// `worker` came from `tickless_throttle_join` and has not left; `waited` is null or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_worker_check(
    worker: *mut WorkerHandle,
    waited: *mut bool,
) -> Status {
    entry(|| {
        // SAFETY: as promised.
        let own = unsafe { WorkerHandle::own_thread(worker)?.value() };
        let checked = own.check().map_err(no_timers)?;
        // SAFETY: as promised.
        unsafe { put(waited, checked == Checked::Waited) };
        Ok(())
    })
}

/// Gives back what the thread has not used of its slice: before it rests for long while others of
/// its group work.
///
/// Errors: as `tickless_worker_check`.
///
/// # Safety
/// `worker` came from `tickless_throttle_join` and has not left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_worker_rest(worker: *mut WorkerHandle) -> Status {
    entry(|| {
        // SAFETY: as promised.
        unsafe { WorkerHandle::own_thread(worker)?.value() }.rest().map_err(no_timers)
    })
}

/// Ends the thread's part, and gives back what it has not used; null is nothing to do.
///
/// Errors: `TICKLESS_WRONG_THREAD`.
///
/// # Safety
/// `worker` is null or came from `tickless_throttle_join` and has not left; nobody uses it later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tickless_worker_leave(worker: *mut WorkerHandle) -> Status {
    // SAFETY: as promised.
    entry(|| unsafe { Handle::free(worker) })
}
