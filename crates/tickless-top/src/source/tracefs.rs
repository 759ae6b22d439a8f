//! Counts timer events that the kernel records in a tracefs instance: trace buffers of its own.

use super::process::Processes;
use super::{SourceError, own_ns, realtime_ahead, tick, time};
use crate::snapshot::Snapshot;
use crate::tally::{Clocks, Tally};
use rustix::time::ClockId;
use std::path::Path;
use tickless_trace::read::{Context, Event};
use tickless_trace::record::{IdleEvents, IdleStops, Live, Options, RecordError, Tracefs};

/// Counts the events of a tracefs instance (trace buffers of its own). Dropping it removes the
/// instance.
#[derive(Debug)]
pub struct FromTracefs {
    live: Live,
    tally: Tally,
    processes: Processes,
    sees_device_writes: bool,
    sees_wakeups: bool,
    stops_before: IdleStops,
    idle_events: IdleEvents,
}

impl FromTracefs {
    pub fn start(program: Option<&Path>) -> Result<FromTracefs, SourceError> {
        let tracefs = Tracefs::find()?;
        let events = tracefs.root().join("events");
        let (sees_device_writes, sees_wakeups) = (
            events.join("msr/write_msr").is_dir(),
            events.join("irq_vectors/local_timer_entry").is_dir(),
        );
        // A thread may end before its events are read, and then `/proc` cannot name its process. So
        // this event reports the process when the thread begins.
        const NEW_TASK: &str = "task:task_newtask";
        let has_new_task = events.join(NEW_TASK.replace(':', "/")).is_dir();
        let more = has_new_task.then(|| NEW_TASK.to_string()).into_iter().collect();
        let stops_before = IdleStops::now();
        let live = Live::start(tracefs, &Options { more, ..Options::default() }, program)?;
        let clocks = Clocks { tick: tick(), realtime_ahead: realtime_ahead() };
        Ok(FromTracefs {
            live,
            tally: Tally::new(clocks),
            processes: Processes::default(),
            sees_device_writes,
            sees_wakeups,
            stops_before,
            idle_events: IdleEvents::new(),
        })
    }

    pub fn notes(&self) -> &[String] {
        self.live.notes()
    }

    pub(super) fn poll(&mut self) -> Result<(), SourceError> {
        let FromTracefs { live, tally, processes, idle_events, .. } = self;
        let counted = live.read(|record, names| {
            if record.pid == 0 && record.context == Context::Task {
                *idle_events.entry(record.cpu.0).or_default() += 1;
            }
            match record.event {
                Event::TaskNew { pid, is_thread: true } => processes.begins(pid, record.pid),
                Event::TaskNew { pid, is_thread: false } => processes.begins(pid, pid),
                _ => tally.count(record, names, &mut |pid| processes.of_thread(pid)),
            }
        });
        counted.map_err(|error: RecordError| error.into())
    }

    /// Returns the CPUs on which the kernel recorded nothing of the idle thread, although it ran.
    fn unseen_idle(&self) -> Vec<u16> {
        if self.live.lost() > 0 {
            // The events of an idle thread may be among the lost ones, so its absence proves
            // nothing.
            return Vec::new();
        }
        let unseen = IdleStops::now().unseen(&self.stops_before, &self.idle_events);
        unseen.into_iter().map(|cpu| cpu.0).collect()
    }

    pub(super) fn snapshot(&mut self) -> Result<Snapshot, SourceError> {
        let at = time(ClockId::Monotonic);
        self.poll()?;
        let unseen_idle = self.unseen_idle();
        let FromTracefs { live, tally, processes, sees_device_writes, sees_wakeups, .. } = self;
        let mut name = |process| processes.name(process, |pid| live.name_of_ended(pid));
        let snapshot = tally.snapshot(at, live.names(), &mut name);
        Ok(Snapshot {
            lost: live.lost(),
            unseen_idle,
            own_ns: own_ns(),
            sees_device_writes: *sees_device_writes,
            sees_wakeups: *sees_wakeups,
            ..snapshot
        })
    }
}
