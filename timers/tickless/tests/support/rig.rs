//! Runs one test on each event device: on driver threads, or in an event loop of the test.

#[cfg(linux_platform)]
use rustix::event::{PollFd, PollFlags, poll};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use tickless::driver::EventLoopDriver;
use tickless::{Builder, Timers};

/// The event device, and the thread that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    Futex,
    /// A loop that polls the driver's descriptor.
    #[cfg(linux_platform)]
    Polled,
    /// A loop that waits with a timeout and is woken by the driver's callback.
    Called,
}

impl On {
    pub const ALL: &[On] = &[
        On::Futex,
        #[cfg(linux_platform)]
        On::Polled,
        On::Called,
    ];

    /// Returns the devices of this system: Miri has no timerfd.
    pub fn each() -> impl Iterator<Item = On> {
        On::ALL.iter().copied().filter(|on| !cfg!(miri) || matches!(on, On::Futex | On::Called))
    }
}

/// Timers on one base, and the loop that drives them. Drop the timers first.
pub struct Rig {
    timers: Option<Timers>,
    event_loop: Option<JoinHandle<()>>,
}

impl Rig {
    pub fn start(on: On, builder: Builder) -> Rig {
        let builder = builder.bases(1);
        let (timers, event_loop) = match on {
            On::Futex => (builder.start().unwrap(), None),
            #[cfg(linux_platform)]
            On::Polled => {
                let (timers, driver) = builder.start_in_loop().unwrap();
                (timers, Some(std::thread::spawn(|| poll_until_over(driver))))
            }
            On::Called => {
                let waker = Arc::new(OnceLock::<Thread>::new());
                let (timers, driver) = builder.start_in_loop_with({
                    let waker = Arc::clone(&waker);
                    move |_| waker.get().expect("set before it waits").unpark()
                });
                let run = move || wait_until_over(driver, &waker);
                (timers, Some(std::thread::spawn(run)))
            }
        };
        Rig { timers: Some(timers), event_loop }
    }
}

impl std::ops::Deref for Rig {
    type Target = Timers;

    fn deref(&self) -> &Timers {
        self.timers.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.timers.take());
        if let Some(event_loop) = self.event_loop.take()
            && !std::thread::panicking()
        {
            event_loop.join().unwrap();
        }
    }
}

#[cfg(linux_platform)]
fn poll_until_over(mut driver: EventLoopDriver) {
    while !driver.is_over() {
        poll(&mut [PollFd::new(&driver, PollFlags::IN)], None).unwrap();
        driver.run();
    }
}

fn wait_until_over(mut driver: EventLoopDriver<()>, waker: &OnceLock<Thread>) {
    waker.get_or_init(std::thread::current);
    while !driver.is_over() {
        match driver.timeout() {
            Some(timeout) => std::thread::park_timeout(timeout),
            None => std::thread::park(),
        }
        driver.run();
    }
}
