//! Threads, which a forked child starts without `std`: a thread of `std` takes a lock when it
//! begins and when it ends (as of Rust 1.95), and another thread of the parent perhaps held that
//! lock at the fork. In the parent they are threads of `std`, which prints their names when they
//! panic, and reports an overflow of their stack.

use std::io;
use std::thread::{Builder, JoinHandle};

#[derive(Debug)]
pub enum Thread {
    Std(JoinHandle<()>),
    #[cfg(linux_platform)]
    OfChild(bare::Thread),
}

impl Thread {
    pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        #[cfg(linux_platform)]
        if crate::platform::fork::is_child() {
            return bare::Thread::spawn(name, body).map(Thread::OfChild);
        }
        Builder::new().name(name).spawn(body).map(Thread::Std)
    }

    /// Waits until the thread has ended.
    pub fn join(self) {
        match self {
            Thread::Std(thread) => _ = thread.join(),
            #[cfg(linux_platform)]
            Thread::OfChild(thread) => thread.join(),
        }
    }
}

/// Threads of the C library.
#[cfg(linux_platform)]
mod bare {
    use core::ffi::c_void;
    use core::mem::{ManuallyDrop, MaybeUninit, forget};
    use core::ptr::null_mut;
    use std::ffi::CString;
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// The size of a stack, as `std` has it. The default of musl is 128 KiB.
    const STACK: usize = 2 << 20;

    /// A `pthread_t`, as a number: with some C libraries that is a pointer, which is not `Send`.
    #[derive(Debug)]
    pub struct Thread(usize);

    type Body = Box<dyn FnOnce() + Send>;

    impl Thread {
        pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
            let name = CString::new(name)?;
            let body: Body = Box::new(move || {
                // Without a name if the system refuses it.
                let _ = rustix::thread::set_name(&name);
                body();
            });
            let body: *mut Body = Box::into_raw(Box::new(body));
            let mut settings = MaybeUninit::uninit();
            let mut thread = MaybeUninit::uninit();
            // SAFETY: the settings are initialised before they are used. `begin` takes the body,
            // or, if no thread was started, this function does.
            unsafe {
                libc::pthread_attr_init(settings.as_mut_ptr());
                libc::pthread_attr_setstacksize(settings.as_mut_ptr(), STACK);
                let (place, settings) = (thread.as_mut_ptr(), settings.as_mut_ptr());
                let error = libc::pthread_create(place, settings, begin, body.cast());
                libc::pthread_attr_destroy(settings);
                if error != 0 {
                    drop(Box::from_raw(body));
                    return Err(io::Error::from_raw_os_error(error));
                }
                Ok(Thread(thread.assume_init() as usize))
            }
        }

        pub fn join(self) {
            let thread = ManuallyDrop::new(self);
            // SAFETY: the thread has been neither joined nor detached.
            unsafe { libc::pthread_join(thread.0 as libc::pthread_t, null_mut()) };
        }
    }

    impl Drop for Thread {
        fn drop(&mut self) {
            // SAFETY: the thread has been neither joined nor detached.
            unsafe { libc::pthread_detach(self.0 as libc::pthread_t) };
        }
    }

    extern "C" fn begin(body: *mut c_void) -> *mut c_void {
        // SAFETY: `spawn` passes a boxed body, which only this thread uses.
        let body = unsafe { Box::from_raw(body.cast::<Body>()) };
        // The drop of a payload can panic, too, and no panic may leave this function.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(*body)) {
            forget(payload);
        }
        null_mut()
    }
}
