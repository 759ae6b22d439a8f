//! Event devices. Each base (one CPU's timers) has one, which wakes the thread that waits in it
//! when the next timer of the base is due.
//!
//! | file | device | programming it costs | what waits in it |
//! |---|---|---|---|
//! | `futex` | a futex with a timeout | a system call, if it must wake its driver | a driver |
//! | `timerfd` | a timerfd in an epoll | a system call, which wakes no thread | a driver |
//! | `own_loop` | a timerfd, or a callback | a system call, or the callback | an event loop |
//!
//! `bell` has the protocols that wake a waiting driver thread or event loop. Every base has a
//! futex, whatever its device is: if the system later refuses calls for the timerfd, the driver
//! continues on the futex with all its timers.

pub mod base;
#[cfg_attr(feature = "policy", expect(missing_docs, reason = "only studies see it"))]
pub mod bell;
pub mod fallback;
pub mod futex;
pub mod own_loop;
#[cfg(linux_platform)]
pub mod timerfd;

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    /// Two threads call `arm` with their number and a round, and then wait until a third thread has
    /// answered. The third thread repeats `serve`, which answers all calls so far and then waits to
    /// be woken. At the end `stop` is set, and `end` wakes the third thread. Returns whether every
    /// call was answered: if not, a wakeup was lost.
    pub fn all_are_answered(
        rounds: u64,
        stop: &AtomicBool,
        arm: impl Fn(u64, u64) + Sync,
        serve: impl Fn(&dyn Fn()) + Sync,
        end: impl Fn(),
    ) -> bool {
        let (asked, seen) = ([const { AtomicU64::new(0) }; 2], [const { AtomicU64::new(0) }; 2]);
        let answer = || {
            for (asked, seen) in asked.iter().zip(&seen) {
                seen.store(asked.load(Ordering::SeqCst), Ordering::SeqCst);
            }
        };
        let is_answered = |me: usize, round| {
            asked[me].store(round, Ordering::SeqCst);
            arm(me as u64, round);
            let begun = Instant::now();
            while seen[me].load(Ordering::SeqCst) < round {
                if begun.elapsed() > Duration::from_secs(10) {
                    return false;
                }
                core::hint::spin_loop();
            }
            true
        };
        std::thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    serve(&answer);
                }
            });
            let is_answered = &is_answered;
            let armers =
                [0, 1].map(|me| s.spawn(move || (1..=rounds).all(|round| is_answered(me, round))));
            let all = armers.map(|armer| armer.join().is_ok_and(|all| all));
            stop.store(true, Ordering::Release);
            end();
            all == [true, true]
        })
    }
}
