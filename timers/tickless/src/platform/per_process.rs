//! A global value of which each process has its own, created on first use and never freed.

use crate::platform::fork::ProcessLock;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A value that exists once in each process: a forked child creates its own.
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
    pub const fn new() -> PerProcess<T> {
        let value = AtomicPtr::new(core::ptr::null_mut());
        PerProcess { value, making: ProcessLock::new(()) }
    }

    /// Returns the value of this process. Creates it with `make` if there is none, or if `is_ours`
    /// returns `false`: then it was inherited from the parent process. Returns `None` if `make`
    /// fails. Once the value exists, this costs one load.
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
        // SAFETY: the pointer is null, or comes from `Box::leak` and is never freed.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// Makes the value, unless another thread has made it.
    #[cold]
    fn make(&self, is_ours: impl Fn(&T) -> bool, make: impl FnOnce() -> Option<T>) -> Option<&T> {
        let _one_at_a_time = self.making.lock();
        if let Some(value) = self.made().filter(|value| is_ours(value)) {
            return Some(value);
        }
        let value = Box::leak(Box::new(make()?));
        // Release: pairs with the Acquire in `made`, and publishes the value.
        self.value.store(value, Ordering::Release);
        self.made()
    }
}
