//! One value for a process, made when it is first asked for and never freed.

use crate::platform::fork::ProcessLock;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A value that a process has once. The child of a fork may make one of its own.
#[derive(Debug)]
pub struct PerProcess<T> {
    value: AtomicPtr<T>,
    making: ProcessLock<()>,
}

impl<T: Sync> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess::new()
    }
}

impl<T: Sync> PerProcess<T> {
    /// None yet.
    pub const fn new() -> PerProcess<T> {
        let value = AtomicPtr::new(core::ptr::null_mut());
        PerProcess { value, making: ProcessLock::new(()) }
    }

    /// The value; made by `make` if there is none, or only one that `is_ours` says is the parent's.
    /// `None` if it cannot be made just now.
    #[inline]
    pub fn get(
        &self,
        is_ours: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Option<T>,
    ) -> Option<&T> {
        match self.made() {
            Some(value) if is_ours(value) => Some(value),
            _ => self.make(is_ours, make),
        }
    }

    #[inline]
    fn made(&self) -> Option<&T> {
        // Acquire: pairs with the Release in `make`.
        // SAFETY: what has been put there is never freed.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn make(&self, is_ours: impl Fn(&T) -> bool, make: impl FnOnce() -> Option<T>) -> Option<&T> {
        let _one_at_a_time = self.making.lock();
        if let Some(value) = self.made().filter(|value| is_ours(value)) {
            return Some(value);
        }
        let value = Box::leak(Box::new(make()?));
        // Release: who finds it finds it whole.
        self.value.store(value, Ordering::Release);
        self.made()
    }
}
