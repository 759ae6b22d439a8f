//! A fuzz target that calls the C interface with null and misaligned pointers, with storage that
//! was never initialised, was destroyed or is a copy, with invented keys, and with numbers out of
//! range. It checks that no call crashes, that each returns a status that the C header allows, and
//! that each error has a text.
//!
//! The target obeys the one rule that the library cannot check: a pointer that is not null points
//! to memory.

use crate::bytes::Bytes;
use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use tickless_capi::fired::Expiry;
use tickless_capi::local::*;
use tickless_capi::options::{Options, TICKLESS_SYSTEM_CLOCK};
use tickless_capi::periodic::*;
use tickless_capi::stats::{TimerStats, tickless_timers_stats};
use tickless_capi::status::{Status, tickless_error_text, tickless_status_name};
use tickless_capi::timer::*;
use tickless_capi::timers::*;

const STORAGES: usize = 8;
/// The memory for one timer, in words: the size of the largest timer, and two spare words.
const WORDS: usize = size_of::<PeriodicStorage>() / 8 + 2;

/// Returns the set of timers of all runs: starting a set takes a millisecond and a thread.
fn timers() -> *mut TimerSet {
    static SET: OnceLock<AtomicPtr<TimerSet>> = OnceLock::new();
    let start = || {
        let options = Options {
            size: size_of::<Options>(),
            bases: 2,
            flags: TICKLESS_SYSTEM_CLOCK,
            ..Options::default()
        };
        let mut set = null_mut();
        // SAFETY: both pointers lead to local variables, which can be read and written.
        assert_eq!(unsafe { tickless_timers_start(&raw const options, &raw mut set) }, Status::Ok);
        AtomicPtr::new(set)
    };
    SET.get_or_init(start).load(Ordering::Relaxed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    Timer,
    Periodic,
}

struct Model<'a> {
    bytes: Bytes<'a>,
    memory: Box<[[u64; WORDS]; STORAGES]>,
    holds: [Holds; STORAGES],
    local: *mut Local,
    keys: Vec<u64>,
    live: BTreeSet<u64>,
}

pub fn run(bytes: &[u8]) {
    let mut local = null_mut();
    // SAFETY: it can be written.
    assert_eq!(unsafe { tickless_local_create(0, 0, 0, &raw mut local) }, Status::Ok);
    let memory = Box::new([[0; WORDS]; STORAGES]);
    let mut model = Model {
        bytes: Bytes::new(bytes),
        memory,
        holds: [Holds::Nothing; STORAGES],
        local,
        keys: Vec::new(),
        live: BTreeSet::new(),
    };
    while let Some(choice) = model.bytes.next() {
        let status = match choice % 4 {
            0 => model.local(choice >> 2),
            1 => model.periodic(choice >> 2),
            _ => model.timer(choice >> 2),
        };
        check(status);
    }
    for at in 0..STORAGES {
        let place = model.memory[at].as_mut_ptr();
        // SAFETY: `place` leads to memory that still exists, and no other thread uses the timer in
        // it.
        let status = unsafe {
            match model.holds[at] {
                Holds::Nothing => continue,
                Holds::Timer => tickless_timer_destroy(place.cast()),
                Holds::Periodic => tickless_periodic_destroy(place.cast()),
            }
        };
        assert_eq!(status, Status::Ok, "the timer was initialised");
    }
    // SAFETY: `local` was created above, and is destroyed only here.
    assert_eq!(unsafe { tickless_local_destroy(local) }, Status::Ok);
}

fn check(status: Status) {
    assert_ne!(status, Status::Internal, "a panic in the library");
    // SAFETY: both functions return zero-terminated texts, which are valid until the next call of
    // the library.
    let (text, name) = unsafe {
        (CStr::from_ptr(tickless_error_text()), CStr::from_ptr(tickless_status_name(status as i32)))
    };
    assert!(status == Status::Ok || !text.is_empty(), "{name:?} has no text");
    assert!(!name.is_empty());
}

unsafe extern "C-unwind" fn nothing(_: *mut Expiry, _: *mut c_void) {}

unsafe extern "C-unwind" fn fire(
    local: *mut Local,
    key: LocalKey,
    _: *mut c_void,
    data: *mut c_void,
) {
    // SAFETY: `data` points to the counter that the function `local` below passes, and the timers
    // belong to this thread.
    unsafe {
        *data.cast::<u32>() += 1;
        check(tickless_local_start(local, key, 1_000_000));
        assert_eq!(tickless_local_destroy(local), Status::Busy);
    }
}

impl Model<'_> {
    /// Chooses a timer's memory: returns its index and a pointer to it, or `STORAGES` and a pointer
    /// that is null or misaligned.
    fn place(&mut self) -> (usize, *mut u64) {
        let choice = self.bytes.byte();
        let at = usize::from(choice) % STORAGES;
        let place = self.memory[at].as_mut_ptr();
        match choice / 8 {
            0 => (STORAGES, null_mut()),
            // SAFETY: within the same array.
            1 => (STORAGES, unsafe { place.byte_add(1) }),
            _ => (at, place),
        }
    }

    fn signed(&mut self) -> i64 {
        self.bytes.number() as i64
    }

    /// Checks the status that a call returned for a timer's memory. The call must fail unless the
    /// memory held `before`; if it has succeeded, the memory holds `after` now.
    fn expect(&mut self, at: usize, before: Holds, status: Status, after: Holds) -> Status {
        if at == STORAGES {
            assert!(matches!(status, Status::NullPointer | Status::Misaligned), "{status:?}");
        } else if self.holds[at] != before {
            assert_ne!(status, Status::Ok, "the memory does not hold what the call needs");
        } else {
            assert_ne!(status, Status::NotInitialised);
        }
        if status == Status::Ok {
            self.holds[at] = after;
        }
        status
    }

    fn timer(&mut self, choice: u8) -> Status {
        let (at, place) = self.place();
        let timer = place.cast::<TimerStorage>();
        let set = timers();
        let mut found = CancelFound::Idle;
        let found = if self.bytes.byte() == 0 { null_mut() } else { &raw mut found };
        let mut is = false;
        // SAFETY: `timer` is null, misaligned, or points to initialised memory that is large enough
        // for any timer. The pointers for results are null or point to this function's variables.
        let status = unsafe {
            match choice % 16 {
                0 | 1 => return self.init(at, timer, set),
                2 => tickless_timer_start(timer, self.signed()),
                3 => tickless_timer_start_slack(timer, self.signed(), self.signed()),
                4 => tickless_timer_start_at(timer, self.bytes.number()),
                5 => tickless_timer_start_range(timer, self.bytes.number(), self.bytes.number()),
                6 => tickless_timer_reduce(timer, self.signed()),
                7 => tickless_timer_try_cancel(timer, found),
                8 => tickless_timer_cancel(timer, found),
                9 => tickless_timer_cancel_sync(timer, found),
                10 => tickless_timer_cancel_single_shot(timer, found),
                11 => tickless_timer_is_pending(timer, &raw mut is),
                12 => tickless_timer_is_active(timer, &raw mut is),
                13 => return self.spoil(at),
                14 => return self.stats(set),
                _ => tickless_timer_destroy(timer),
            }
        };
        let after = if choice % 16 == 15 { Holds::Nothing } else { Holds::Timer };
        self.expect(at, Holds::Timer, status, after)
    }

    fn init(&mut self, at: usize, timer: *mut TimerStorage, set: *mut TimerSet) -> Status {
        let kind = match self.bytes.byte() {
            any if any % 4 == 0 => self.bytes.number() as u32,
            valid => u32::from(valid % 2),
        };
        let set = if self.bytes.byte() == 0 { null_mut() } else { set };
        let callback: tickless_capi::fired::Callback =
            if self.bytes.byte() == 0 { None } else { Some(nothing) };
        // SAFETY: `timer` is null, misaligned, or points to initialised memory that is large
        // enough. Memory that holds a timer of the other type is not overwritten.
        unsafe {
            if at < STORAGES && self.holds[at] == Holds::Periodic {
                return Status::Ok;
            }
            let status = tickless_timer_init(timer, set, kind, callback, null_mut());
            self.expect(at, Holds::Nothing, status, Holds::Timer)
        }
    }

    /// If the memory holds no timer, fills it with zeros, garbage, or a copy of another timer.
    fn spoil(&mut self, at: usize) -> Status {
        if at < STORAGES && self.holds[at] == Holds::Nothing {
            let other = self.memory[(at + 1) % STORAGES];
            match self.bytes.byte() % 3 {
                0 => self.memory[at] = [0; WORDS],
                1 => self.memory[at] = [0xa5a5_a5a5_a5a5_a5a5; WORDS],
                _ if self.holds[(at + 1) % STORAGES] == Holds::Nothing => self.memory[at] = other,
                _ => {}
            }
        }
        Status::Ok
    }

    fn stats(&mut self, set: *mut TimerSet) -> Status {
        // The library writes as many bytes as `size` states, so `size` must not exceed the size of
        // the struct.
        let size = [size_of::<TimerStats>(), 0, 8][self.bytes.below(3)];
        let mut stats = TimerStats { size, ..TimerStats::default() };
        let base = self.bytes.number() as u32;
        // SAFETY: `stats` is a local variable of at least `size` bytes.
        unsafe { tickless_timers_stats(set, base, &raw mut stats) }
    }

    fn periodic(&mut self, choice: u8) -> Status {
        let (at, place) = self.place();
        let timer = place.cast::<PeriodicStorage>();
        let mut found = CancelFound::Idle;
        let (mut is, mut ns) = (false, 0);
        // SAFETY: `timer` is null, misaligned, or points to initialised memory that is large enough
        // for any timer. The pointers for results point to this function's variables.
        let status = unsafe {
            match choice % 8 {
                0 => {
                    if at < STORAGES && self.holds[at] == Holds::Timer {
                        return Status::Ok;
                    }
                    let options = PeriodicOptions {
                        size: size_of::<PeriodicOptions>(),
                        slack_ns: self.bytes.number(),
                        phase_value: self.bytes.number(),
                        missed: u32::from(self.bytes.byte() % 5),
                        phase: u32::from(self.bytes.byte() % 6),
                    };
                    let options = if self.bytes.byte() == 0 { null() } else { &raw const options };
                    let status =
                        tickless_periodic_init(timer, timers(), options, Some(nothing), null_mut());
                    return self.expect(at, Holds::Nothing, status, Holds::Periodic);
                }
                // At least 2^24 ns: a period of a few nanoseconds would keep a driver busy.
                1 => tickless_periodic_start(timer, self.signed() | 1 << 24),
                2 => {
                    tickless_periodic_start_at(timer, self.bytes.number(), self.signed() | 1 << 24)
                }
                3 => tickless_periodic_cancel(timer, &raw mut found),
                4 => tickless_periodic_cancel_sync(timer, &raw mut found),
                5 => tickless_periodic_is_active(timer, &raw mut is),
                6 => tickless_periodic_phase_offset(timer, &raw mut ns),
                _ => tickless_periodic_destroy(timer),
            }
        };
        let after = if choice % 8 == 7 { Holds::Nothing } else { Holds::Periodic };
        self.expect(at, Holds::Periodic, status, after)
    }

    fn key(&mut self) -> (u64, LocalKey) {
        let choice = self.bytes.byte();
        let known = self.keys.get(usize::from(choice) % self.keys.len().max(1)).copied();
        let bits = match (choice % 8, known) {
            (0, _) | (_, None) => self.bytes.number(),
            (1, Some(bits)) => bits.wrapping_add(1 << 32),
            (2, Some(bits)) => bits ^ 1 << (self.bytes.byte() % 64),
            (_, Some(bits)) => bits,
        };
        // SAFETY: `LocalKey` is a struct of one integer, for which every value is valid.
        (bits, unsafe { core::mem::transmute::<u64, LocalKey>(bits) })
    }

    fn local(&mut self, choice: u8) -> Status {
        let local = if self.bytes.byte() == 0 { null_mut() } else { self.local };
        let (bits, key) = self.key();
        let (mut is, mut ns, mut data, mut fired, mut seen) = (false, 0, null_mut(), 0, 0_u32);
        // SAFETY: `local` is null or belongs to this thread. The pointers for results point to this
        // function's variables.
        let status = unsafe {
            match choice % 8 {
                0 | 1 => {
                    let kind = u32::from(self.bytes.byte() % 3);
                    let mut key = key;
                    let status = tickless_local_insert(local, kind, null_mut(), &raw mut key);
                    if status == Status::Ok {
                        let bits = core::mem::transmute::<LocalKey, u64>(key);
                        assert!(self.live.insert(bits), "a key was returned twice");
                        self.keys.push(bits);
                    }
                    return status;
                }
                2 => tickless_local_remove(local, key, &raw mut data),
                3 => tickless_local_start(local, key, self.signed() & i64::MAX),
                4 => {
                    tickless_local_start_range(local, key, self.bytes.number(), self.bytes.number())
                }
                5 => tickless_local_cancel(local, key, &raw mut is),
                6 => tickless_local_is_pending(local, key, &raw mut is),
                _ => {
                    let (now, budget) = (self.bytes.number(), self.bytes.below(9));
                    let context = (&raw mut seen).cast();
                    let status = tickless_local_advance(
                        local,
                        now,
                        budget,
                        Some(fire),
                        context,
                        &raw mut fired,
                    );
                    assert!(status != Status::Ok || seen as usize == fired);
                    check(tickless_local_next_event(local, &raw mut ns));
                    return status;
                }
            }
        };
        if local.is_null() {
            assert_eq!(status, Status::NullPointer);
            return status;
        }
        // Without a live timer only `tickless_local_is_pending` succeeds, and reports false.
        let is_live = self.live.contains(&bits);
        assert!(!is_live || status != Status::NoSuchTimer, "a live timer is not found");
        assert!(is_live || choice % 8 == 6 || status != Status::Ok, "a removed timer is found");
        assert!(is_live || !is, "a removed timer is pending");
        if choice % 8 == 2 && status == Status::Ok {
            self.live.remove(&bits);
        }
        status
    }
}
