//! Measures the accuracy and the cost of the library's bandwidth controller, which limits groups of
//! threads to a quota of CPU time.

use super::work::{Work, now_ns};
use crate::error::LabError;
use crate::measure::{self, Spread, timed, wait};
use crate::studies::cell::{Band, Cell};
use crate::studies::request::Request;
use crate::studies::result::StudyResult;
use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;
use tickless::Timers;
use tickless::bandwidth::Throttle;
use tickless::periodic::Phase;

/// Lets the calling thread join a group. Returns the function that throttles it.
pub(super) fn join(
    group: &Throttle,
) -> Result<impl FnMut() -> Result<(), LabError> + use<>, LabError> {
    let mut worker = group.join().map_err(refused)?;
    Ok(move || {
        let check = worker.check().map(drop);
        check.map_err(LabError::other("a worker could not be throttled; run the study again"))
    })
}

pub(super) fn refused<E: Into<Box<dyn Error + Send + Sync>>>(error: E) -> LabError {
    LabError::other(
        "a bandwidth group could not be started; raise the limit on threads (ulimit -u)",
    )(error)
}

/// Adds how exactly the library keeps a quota, and what it costs to refill a thousand groups.
pub(super) fn cells(
    study: &mut StudyResult,
    request: &Request,
    work: Work,
) -> Result<(), LabError> {
    let period = request.effort.pick(10, 20, 100);
    error(study, work, Duration::from_millis(period))?;
    cost(study, Duration::from_millis(request.effort.pick(300, 3_000, 10_000)))
}

/// Measures the difference between the CPU time of groups and their quotas, in percent.
fn error(study: &mut StudyResult, work: Work, period: Duration) -> Result<(), LabError> {
    const PERIODS: u32 = 100;
    let quota = period * work.workers as u32 / 4;
    let timers = Timers::builder().start()?;
    let start = |_| timers.throttle(quota, period).slice(quota / 20).start().map_err(refused);
    let groups: Vec<Throttle> = (0..2).map(start).collect::<Result<_, _>>()?;
    // The work lasts four periods longer than the measurement: the first periods are not measured,
    // because each group's pool of time begins full.
    let work = Work { of_group: quota * (PERIODS + 4), ..work };
    let (before, after, periods) = std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let look = || {
                [&groups[0], &groups[1]].map(|group| {
                    let counts = group.counts();
                    (counts.used as f64, counts.expired as f64)
                })
            };
            wait(period * 2);
            let (before, begun) = (look(), now_ns());
            wait(period * PERIODS);
            (before, look(), (now_ns() - begun) as f64 / period.as_nanos() as f64)
        });
        work.run(|group| join(&groups[group]))?;
        looks.join().map_err(|_| LabError::Thread { what: "looking at the groups" })
    })?;
    let of_quota = |value: f64| 100.0 * value / (periods * quota.as_nanos() as f64);
    let used = |group: usize| of_quota(after[group].0 - before[group].0) - 100.0;
    let expired = |group: usize| of_quota(after[group].1 - before[group].1);
    let over = Spread::of([0, 1].map(|group| used(group) + expired(group)).map(f64::abs));
    let cell = Cell::live("control.error_over_100_periods", "%", over);
    study.cells.push(cell.within(Band::at_most(1.0)));
    let idle = Spread::of([0, 1].map(expired));
    study.cells.push(Cell::live("control.quota_not_asked_for", "%", idle));
    study.notes.push(format!(
        "control.error_over_100_periods: the difference between the quota of 100 periods of {} ms \
         and what each group used, plus what expired because no thread could request it in time",
        period.as_millis()
    ));
    Ok(())
}

/// Measures the CPU time that refilling a thousand groups takes. Their period is 100 ms, and in
/// each group a future always waits for the next refill.
fn cost(study: &mut StudyResult, long: Duration) -> Result<(), LabError> {
    const GROUPS: usize = 1_000;
    let period = Duration::from_millis(100);
    let mut context = Context::from_waker(Waker::noop());
    for (name, phase) in [("spread", Phase::Spread), ("aligned", Phase::Aligned)] {
        let timers = Timers::builder().start()?;
        let start = |_| timers.limiter(1, period).phase(phase).start().map_err(refused);
        let groups: Vec<_> = (0..GROUPS).map(start).collect::<Result<_, _>>()?;
        let each = long.as_millis() / period.as_millis() + 3;
        let mut waiting: Vec<_> =
            groups.iter().flat_map(|group| (0..each).map(|_| Box::pin(group.acquire(1)))).collect();
        for future in &mut waiting {
            let _ = pin!(future).poll(&mut context);
        }
        let refills = || groups.iter().map(|group| group.counts().refills).sum::<u64>();
        let events = || timers.stats().bases.iter().map(|base| base.device.events).sum::<u64>();
        let (refills_before, events_before) = (refills(), events());
        let ((), usage) = timed(|| wait(long));
        let refilled = (refills() - refills_before) as f64 / usage.real_s;
        let woken = (events() - events_before) as f64 / usage.real_s;
        let mut push = |what: &str, unit, value, band: Option<Band>| {
            let id = format!("control.1000_groups.{name}.{what}");
            let cell = Cell::live(id, unit, value);
            study.cells.push(cell.within(band));
        };
        let percent = 100.0 * usage.cpu_s() / usage.real_s;
        let target = Band::at_most(measure::cpus().len() as f64);
        push("cpu_percent", "%", percent, Some(target));
        push("refills_per_s", "1/s", refilled, None);
        push("wakeups_per_s", "1/s", woken, None);
    }
    study.notes.push(format!(
        "control.1000_groups: CPU time of the whole process while 1000 groups of 100 ms are \
         refilled and each releases a waiter; the band is 1 % of this machine, {} CPUs",
        measure::cpus().len()
    ));
    Ok(())
}
