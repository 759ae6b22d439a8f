//! Local timers keep their promises when they are called as C calls them.

#![expect(unsafe_code, reason = "calls the C interface")]
// A test fails by panicking.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic)]

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ops::RangeInclusive;
use core::ptr::{null_mut, without_provenance_mut};
use std::collections::HashMap;
use std::time::Duration;
use tickless_capi::local::*;
use tickless_capi::status::Status;
use tickless_capi::timer::TICKLESS_COARSE;
use tickless_conformance::{Effort, NextEvent, Timers, check};

/// Calls a function of the C interface, which must succeed.
macro_rules! ok {
    ($call:expr) => {
        // SAFETY: the pointers are to memory and to timers that live until the call returns.
        assert_eq!(unsafe { $call }, Status::Ok)
    };
}

/// Coarse timers: how timers are kept is tested where they are implemented.
struct Local {
    timers: *mut tickless_capi::local::Local,
    keys: HashMap<u32, LocalKey>,
}

impl Timers for Local {
    const NAME: &str = "tickless_local_t, coarse";
    const NEXT_EVENT: NextEvent = NextEvent::Bound;
    const ARM_REPLACES: bool = true;

    fn new() -> Self {
        let mut timers = null_mut();
        ok!(tickless_local_create_manual(0, 0, 0, &raw mut timers));
        Local { timers, keys: HashMap::new() }
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        let timers = self.timers;
        let key = *self.keys.entry(key).or_insert_with(|| {
            let (data, mut made) = (without_provenance_mut(key as usize), MaybeUninit::uninit());
            ok!(tickless_local_insert(timers, TICKLESS_COARSE, data, made.as_mut_ptr()));
            // SAFETY: the call has succeeded, so it has written the key.
            unsafe { made.assume_init() }
        });
        ok!(tickless_local_start_range(timers, key, deadline, deadline));
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.arm(key, deadline);
    }

    fn cancel(&mut self, key: u32) -> bool {
        let mut was_pending = false;
        if let Some(&key) = self.keys.get(&key) {
            ok!(tickless_local_cancel(self.timers, key, &raw mut was_pending));
        }
        was_pending
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Self, u32)) {
        let mut fired: Vec<u32> = Vec::new();
        let list = (&raw mut fired).cast();
        ok!(tickless_local_advance(self.timers, now, 0, Some(note), list, null_mut()));
        fired.into_iter().for_each(|key| fire(self, key));
    }

    fn next_event(&mut self) -> Option<u64> {
        let mut next = 0;
        ok!(tickless_local_next_event(self.timers, &raw mut next));
        Some(next).filter(|&next| next != u64::MAX)
    }

    fn may_fire(now: u64, deadline: u64) -> RangeInclusive<u64> {
        let late = deadline.saturating_sub(now) / 100 * 13 + 2_000_000;
        deadline..=deadline.max(now).saturating_add(late)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        ok!(tickless_local_destroy(self.timers));
    }
}

unsafe extern "C-unwind" fn note(
    _: *mut tickless_capi::local::Local,
    _: LocalKey,
    data: *mut c_void,
    list: *mut c_void,
) {
    // SAFETY: the advance that calls this has passed a list, which nothing else uses.
    unsafe { (*list.cast::<Vec<u32>>()).push(data.addr() as u32) };
}

#[test]
fn local_timers_through_c() {
    let effort = Effort { histories: 300, limit: Duration::from_secs(120), ..Effort::default() };
    let report = check::<Local>(effort);
    assert!(report.is_clean(), "{report}");
}
