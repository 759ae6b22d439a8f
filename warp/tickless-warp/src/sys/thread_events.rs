//! Two eBPF programs that count how often each thread is woken, and store when its sleep with a
//! timeout will end. They need root, and Linux 5.5.
#![expect(unsafe_code, reason = "the layout of the programs' map")]

use super::bpf::Programs;
use super::events::clock;
use libc::pid_t;
use rustix::thread::{Timespec, gettid, nanosleep};
use std::fs;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The compiled `bpf/threads.bpf.c`; `ci/bpf.sh` compiles the source again and compares.
static OBJECT: &[u8] = include_bytes!("../../bpf/threads.bpf.o");
/// The number of counts of wakeups. Threads whose numbers are equal modulo this share one.
const SLOTS: usize = 65_536;
/// Of threads whose numbers are equal modulo `SETS`, the last sleeps of `WAYS` are known.
const SETS: usize = 16_384;
const WAYS: usize = 4;
const TASK_WORDS: usize = 2_048;
const TRIES: u32 = 4;

#[repr(C)]
struct Sleep {
    thread: AtomicU64,
    /// The kernel's structure of the thread, which identifies it.
    task: AtomicU64,
    expiry: AtomicU64,
}

/// The entry of the programs' map.
#[repr(C)]
struct Entry {
    sleeps: [[Sleep; WAYS]; SETS],
    wakes: [AtomicU32; SLOTS],
    /// The number of the tracer's thread.
    tracer: AtomicU64,
    /// The address of the kernel's structure of the thread that the tracer perhaps wakes now.
    target: AtomicU64,
    /// How often the tracer has woken a thread that was then the `target`.
    target_wakes: AtomicU64,
    thread_at: AtomicU64,
    task: [AtomicU32; TASK_WORDS],
}

/// Follows all threads of the machine, until it is dropped.
pub(crate) struct ThreadEvents(Programs<Entry>);

impl ThreadEvents {
    /// Loads the programs for a tracer, the calling thread, and checks that they see this thread's
    /// own sleep and wakeup. Takes some 2 ms. `None` where the kernel refuses the programs, or
    /// where its structures are not as the programs expect.
    pub(crate) fn start() -> Option<ThreadEvents> {
        if !is_outermost() {
            return None;
        }
        // SAFETY: `Entry` has the layout of the map's entry.
        let events = ThreadEvents(unsafe { Programs::attach(OBJECT) }?);
        let own = gettid().as_raw_pid();
        events.0.entry().tracer.store(u64::from(own.cast_unsigned()), Ordering::Release);
        events.sleep_is_seen(own)?;
        events.0.entry().thread_at.store(events.thread_at(own)?, Ordering::Release);
        let is_counted = |_| {
            let before = events.wakes(own);
            events.sleep_is_seen(own).is_some() && events.wakes(own) == before + 1
        };
        // Some kernels count no wakeup by an interrupt while a thread of process 1 runs.
        (0..TRIES).any(is_counted).then_some(events)
    }

    /// Finds where the kernel's structure of a thread has the thread's number. In this thread's
    /// structure, its number is directly followed by the number of its process.
    fn thread_at(&self, own: pid_t) -> Option<u64> {
        let words = self.0.entry().task.each_ref().map(|word| word.load(Ordering::Acquire));
        let wanted = [own.cast_unsigned(), std::process::id()];
        let at = words.windows(2).position(|pair| pair == wanted)?;
        Some((at * size_of::<u32>()) as u64)
    }

    /// Sleeps. `None` if the program has not stored the end of the sleep.
    fn sleep_is_seen(&self, own: pid_t) -> Option<()> {
        const SLEEP: Duration = Duration::from_micros(20);
        let before = clock(libc::CLOCK_MONOTONIC);
        let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: SLEEP.subsec_nanos().into() });
        let after = clock(libc::CLOCK_MONOTONIC);
        let expected = before + SLEEP.as_nanos() as u64..=after;
        self.expiry(own).filter(|expiry| expected.contains(expiry)).map(|_| ())
    }

    /// Returns how often a thread has been woken, modulo 2^32. The count rises before the thread
    /// can run.
    pub(crate) fn wakes(&self, tid: pid_t) -> u64 {
        u64::from(
            self.0.entry().wakes[tid.cast_unsigned() as usize % SLOTS].load(Ordering::Acquire),
        )
    }

    /// Returns when a thread's last sleep with a timeout will end or would have ended, by the
    /// kernel's `CLOCK_MONOTONIC`. `None` if that is not known.
    pub(crate) fn expiry(&self, tid: pid_t) -> Option<u64> {
        self.sleep_of(tid).map(|sleep| sleep.expiry.load(Ordering::Acquire))
    }

    fn sleep_of(&self, tid: pid_t) -> Option<&Sleep> {
        let thread = u64::from(tid.cast_unsigned());
        let mut ways = self.0.entry().sleeps[thread as usize % SETS].iter();
        ways.find(|sleep| sleep.thread.load(Ordering::Acquire) == thread)
    }

    /// Calls `wake`, which perhaps wakes a thread that has slept with a timeout. Returns whether it
    /// has woken the thread: the thread was then asleep, or about to sleep.
    pub(crate) fn is_woken_by(&self, tid: pid_t, wake: impl FnOnce()) -> bool {
        let Entry { target, target_wakes, .. } = self.0.entry();
        let task = self.sleep_of(tid).map_or(0, |sleep| sleep.task.load(Ordering::Acquire));
        target.store(task, Ordering::Release);
        let before = target_wakes.load(Ordering::Acquire);
        wake();
        target_wakes.load(Ordering::Acquire) != before
    }
}

/// Returns whether this process is in the outermost namespace of processes, by whose numbers the
/// kernel knows threads.
fn is_outermost() -> bool {
    // The inode of that namespace is fixed.
    const OUTERMOST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| namespace.to_str() == Some(OUTERMOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::events::signal_mask;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn wakeups_and_the_end_of_a_sleep_are_seen() {
        let Some(events) = ThreadEvents::start() else {
            const SYS_ADMIN: u32 = 21;
            let rights = signal_mask(gettid().as_raw_pid(), "CapEff:");
            let may_load = is_outermost() && rights.is_some_and(|of| of >> SYS_ADMIN & 1 != 0);
            assert!(!may_load, "the kernel refuses the programs, or its structures differ");
            eprintln!("skipped: no right to load eBPF programs, or not the outermost namespace");
            return;
        };
        let minute = Duration::from_secs(60).as_nanos() as u64;
        let (send, receive) = mpsc::channel();
        let before = clock(libc::CLOCK_MONOTONIC);
        let sleeper = thread::spawn(move || {
            send.send(gettid().as_raw_pid()).unwrap();
            thread::park_timeout(Duration::from_nanos(minute));
        });
        let tid = receive.recv().unwrap();
        let sleeps = |expiry| expiry >= before + minute;
        while !events.expiry(tid).is_some_and(sleeps) {
            thread::yield_now();
        }
        // The thread is perhaps still about to go to sleep: wait until it sleeps.
        let state = || fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap();
        while state().starts_with("running") {
            thread::yield_now();
        }
        // Another thread sleeps, whose number is equal modulo the number of sets.
        let other = tid ^ SETS as pid_t;
        let sleep = || {
            thread::park_timeout(Duration::from_micros(1));
            gettid().as_raw_pid()
        };
        for _ in 0..1_000 {
            let next = fs::write("/proc/sys/kernel/ns_last_pid", (other - 1).to_string());
            if next.is_err() || thread::spawn(sleep).join().unwrap() == other {
                break;
            }
        }
        assert!(events.expiry(tid).is_some_and(sleeps));
        let wakes = events.wakes(tid);
        assert!(!events.is_woken_by(tid, || {}));
        assert!(!events.is_woken_by(tid, || drop(thread::spawn(|| {}))), "another thread");
        assert_eq!(events.wakes(tid), wakes);
        assert!(events.is_woken_by(tid, || sleeper.thread().unpark()));
        // It runs on, and perhaps sleeps again for a moment.
        assert!(events.wakes(tid) > wakes);
        sleeper.join().unwrap();
    }
}
