//! How a measuring thread runs: on which CPU, with which priority and which timer slack.

use crate::error::LabError;
use rustix::process::geteuid;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use std::io;
use std::num::NonZero;
use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Sleeps for the duration. Parks again if it wakes early: the first park returns at once if a
/// thread of earlier work has left an unpark.
pub fn wait(span: Duration) {
    let end = Instant::now() + span;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    {
        thread::park_timeout(left);
    }
}

/// Binds the calling thread to one CPU. Threads that it starts inherit the binding.
pub fn stay_on(cpu: usize) -> Result<(), LabError> {
    stay_within(&[cpu])
}

/// Binds the calling thread to these CPUs. Threads that it starts inherit the binding.
pub fn stay_within(cpus: &[usize]) -> Result<(), LabError> {
    let mut set = CpuSet::new();
    // A set that lacks all of them is refused.
    cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set)
        .map_err(LabError::system("a thread could not be kept on its CPU; choose others"))
}

/// Gives the calling thread a real-time priority under `SCHED_FIFO`, from 1 to 99, so that it runs
/// before all other threads. Threads that it starts inherit the priority.
pub fn be_urgent(priority: u8) -> Result<(), LabError> {
    const REFUSED: &str = "real-time priority was refused; run as root, raise the limit \
                           (ulimit -r), or leave the priority out";
    const REFUSED_TO_ROOT: &str = "real-time priority was refused to root; raise its control \
                                   group's cpu.rt_runtime_us above 0, start in another group, \
                                   with CAP_SYS_NICE, or leave the priority out";
    let refused = |error| match error {
        thread_priority::Error::OS(number) => io::Error::from_raw_os_error(number),
        other => io::Error::other(other.to_string()),
    };
    let value = ThreadPriorityValue::try_from(priority)
        .map_err(LabError::other("a real-time priority is from 1 to 99"))?;
    set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(value),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .map_err(refused)
    .map_err(LabError::system(if geteuid().is_root() { REFUSED_TO_ROOT } else { REFUSED }))
}

/// Sets the calling thread's timer slack: how much later than requested the kernel is allowed to
/// wake the thread, to combine several wakeups. Real-time threads and timerfd ignore the slack.
pub fn sleep_with_slack(slack_ns: u64) -> Result<(), LabError> {
    // A slack of zero stands for the default; the least one is that of 1 ns.
    set_current_timer_slack(Some(NonZero::new(slack_ns).unwrap_or(NonZero::<u64>::MIN)))
        .map_err(LabError::system("the timer slack could not be set; leave it out"))
}

/// Starts a thread on each of these CPUs. All call `work` at once, each with the index of its CPU
/// in the list. Returns their results. `what` names the threads in an error.
pub fn on_cpus<T: Send>(
    cpus: &[usize],
    what: &'static str,
    work: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, LabError> {
    let ready = Barrier::new(cpus.len());
    thread::scope(|scope| {
        let (ready, work) = (&ready, &work);
        let start = |(place, &cpu): (usize, &usize)| {
            scope.spawn(move || {
                let stays = stay_on(cpu);
                // Wait even after an error: otherwise the other threads would wait for ever.
                ready.wait();
                stays.map(|()| work(place))
            })
        };
        let threads: Vec<_> = cpus.iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| joined(thread, what)).collect()
    })
}

/// Waits for a thread and returns its result. If the thread panicked, the error names it by `what`,
/// such as "that reads the clock".
pub fn joined<T>(
    thread: ScopedJoinHandle<'_, Result<T, LabError>>,
    what: &'static str,
) -> Result<T, LabError> {
    thread.join().unwrap_or(Err(LabError::Thread { what }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::cpus;

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let last = *cpus().last().unwrap();
        let seen = std::thread::spawn(move || stay_on(last).map(|()| cpus())).join().unwrap();
        assert_eq!(seen.unwrap(), [last]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let nowhere = std::thread::spawn(|| stay_on(1_000_000)).join().unwrap().unwrap_err();
        assert!(nowhere.to_string().contains("choose others"), "{nowhere}");
        let beyond = std::thread::spawn(|| be_urgent(100)).join().unwrap().unwrap_err();
        assert!(beyond.to_string().contains("1 to 99"), "{beyond}");
    }
}
