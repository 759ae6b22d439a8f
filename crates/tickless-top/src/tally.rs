//! Counts timer events by process and callback. Pure: turns events into counts without any system
//! call.
//!
//! Rules. The eBPF programs (`bpf/top.bpf.c`) follow them as well.
//! - An arming counts for the process that the CPU runs. In an interrupt that may be any process,
//!   so the arming counts for the process that last armed this timer, or for the kernel if none
//!   did. The kernel's periodic tick counts for the kernel.
//! - The cancel or expiry of a timer counts for the process that armed it.
//! - A removal is no cancel if the next timer event on that CPU arms or expires the same timer: the
//!   kernel removes a timer before it does so.
//! - A write to a CPU's timer device counts for the timer that changed last on that CPU.
//! - When a timer interrupt wakes an idle CPU, the wakeup counts for the first timer that expires
//!   in it. If that timer is the tick, and a coarse timer expires with the tick, the wakeup counts
//!   for the coarse timer.

use crate::period::Vote;
use crate::snapshot::{Counts, Family, Row, Snapshot, Source};
use std::collections::HashMap;
use tickless_core::time::Ns;
use tickless_trace::read::{
    Context, Event, Family as TimerFamily, NameId, Names, Record, SLEEPER_FUNCTION, TimerAddr,
};

/// What must be known of the kernel's clocks to find how far ahead a timer is armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clocks {
    pub tick: Ns,
    pub realtime_ahead: Ns,
}

/// A deadline above this number of nanoseconds is on CLOCK_REALTIME, which counts from 1970. The
/// other clocks count from boot, and no machine runs for the thirty years that this would be.
const REALTIME_FROM: u64 = 1_000_000_000_000_000_000;

#[derive(Debug, Default)]
pub struct Tally {
    clocks: Clocks,
    rows: Vec<(Key, Counts)>,
    places: HashMap<Key, usize>,
    sources: Vec<Source>,
    source_places: HashMap<SourceKey, usize>,
    timers: HashMap<TimerAddr, Timer>,
    cpus: Vec<Cpu>,
    ticks: [Option<NameId>; 2],
    sleeper: Option<NameId>,
    names_known: usize,
    sees_device_writes: bool,
    sees_wakeups: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    process: u32,
    function: NameId,
    family: TimerFamily,
}

/// Identifies something that expires repeatedly: a timer, by its address; or a thread, by its
/// number, since each of its sleeps may use a timer at another address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum SourceKey {
    Timer(TimerAddr, NameId),
    Thread(u32),
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    key: Key,
    pid: u32,
    row: usize,
    source: Option<usize>,
    soft: u64,
    is_pending: bool,
}

#[derive(Clone, Copy, Default, Debug)]
struct Cpu {
    /// The timer that the last timer event on this CPU removed, if it removed one.
    cancelled: Option<TimerAddr>,
    /// The index in `Tally::rows` of the timer that changed last on this CPU.
    row: Option<usize>,
    wake: Wake,
}

/// For which timer the wakeup of an idle CPU counts.
#[derive(Clone, Copy, Default, Debug)]
enum Wake {
    /// Nothing is left to count: the wakeup has been counted, or the CPU was not idle.
    #[default]
    Counted,
    Next,
    /// The wakeup is counted for the tick, in the row with this index. If a coarse timer expires
    /// next, the count moves to the row of that timer.
    Tick(usize),
}

impl Tally {
    pub fn new(clocks: Clocks) -> Tally {
        Tally { clocks, ..Tally::default() }
    }

    /// Counts an event. `process_of` returns the number of the process to which a thread belongs.
    /// O(1).
    pub fn count(
        &mut self,
        record: &Record,
        names: &Names,
        process_of: &mut dyn FnMut(u32) -> u32,
    ) {
        self.learn(names);
        let at = record.cpu.index();
        if self.cpus.len() <= at {
            self.cpus.resize(at + 1, Cpu::default());
        }
        match record.event {
            Event::TimerStart { timer, expires, now, function, .. } => {
                let ticks = expires.0.wrapping_sub(now.0).cast_signed().max(0).cast_unsigned();
                let distance = ticks.saturating_mul(self.clocks.tick.0);
                let key = Key { process: 0, function, family: TimerFamily::Wheel };
                self.armed(record, timer, key, 0, distance, process_of);
            }
            Event::HrtimerStart { timer, expires, soft_expires, function, .. } => {
                let is_realtime = expires.0 > REALTIME_FROM;
                let ahead = if is_realtime { self.clocks.realtime_ahead.0 } else { 0 };
                let distance = expires.0.saturating_sub(record.time.0.saturating_add(ahead));
                let key = Key { process: 0, function, family: TimerFamily::Queue };
                self.armed(record, timer, key, soft_expires.0, distance, process_of);
            }
            Event::TimerCancel { timer } | Event::HrtimerCancel { timer } => {
                self.cancelled(record, timer);
            }
            Event::TimerExpireEntry { timer, function, .. } => {
                let family = TimerFamily::Wheel;
                self.expired(record, timer, Key { process: 0, function, family });
            }
            Event::HrtimerExpireEntry { timer, function, .. } => {
                let family = TimerFamily::Queue;
                self.expired(record, timer, Key { process: 0, function, family });
            }
            Event::WriteMsr { .. } if record.event.is_device_write() => {
                self.sees_device_writes = true;
                if let Some(row) = self.cpus[at].row {
                    self.rows[row].1.device_writes += 1;
                }
            }
            Event::LocalTimerEntry => {
                self.sees_wakeups = true;
                self.cpus[at].wake = if record.pid == 0 { Wake::Next } else { Wake::Counted };
            }
            _ => {}
        }
    }

    /// Returns all counts so far; `process` returns the name of a process by its number.
    pub fn snapshot(
        &self,
        at: Ns,
        names: &Names,
        process: &mut dyn FnMut(u32) -> String,
    ) -> Snapshot {
        let row = |(key, counts): &(Key, Counts)| Row {
            pid: key.process,
            process: process(key.process),
            function: names.name(key.function).to_string(),
            family: match key.family {
                TimerFamily::Wheel => Family::Wheel,
                TimerFamily::Queue => Family::Queue,
            },
            counts: *counts,
        };
        Snapshot {
            at,
            rows: self.rows.iter().map(row).collect(),
            sources: self.sources.clone(),
            sees_device_writes: self.sees_device_writes,
            sees_wakeups: self.sees_wakeups,
            ..Snapshot::default()
        }
    }

    /// If names were added, looks up the callbacks of the tick and of sleeping threads again.
    fn learn(&mut self, names: &Names) {
        if self.names_known != names.len() {
            self.names_known = names.len();
            self.ticks = names.tick_functions();
            self.sleeper = names.find(SLEEPER_FUNCTION);
        }
    }

    fn is_tick(&self, function: NameId) -> bool {
        self.ticks.contains(&Some(function))
    }

    fn row(&mut self, key: Key) -> usize {
        *self.places.entry(key).or_insert_with(|| {
            self.rows.push((key, Counts::default()));
            self.rows.len() - 1
        })
    }

    fn armed(
        &mut self,
        record: &Record,
        timer: TimerAddr,
        key: Key,
        soft: u64,
        distance: u64,
        process_of: &mut dyn FnMut(u32) -> u32,
    ) {
        let known = self.timers.get(&timer).copied();
        let known = known.filter(|known| known.key.function == key.function);
        let is_task = matches!(record.context, Context::Task | Context::NotRecorded);
        let (process, pid) = match known {
            _ if self.is_tick(key.function) => (0, 0),
            _ if is_task && record.pid != 0 => (process_of(record.pid), record.pid),
            Some(known) => (known.key.process, known.pid),
            None => (0, 0),
        };
        let key = Key { process, ..key };
        let row = match known {
            Some(known) if known.key == key => known.row,
            _ => self.row(key),
        };
        let source = match known {
            Some(known) if known.pid == pid && known.key == key => known.source,
            _ => self.source(timer, key, pid, row),
        };
        let cpu = &mut self.cpus[record.cpu.index()];
        let is_half = cpu.cancelled == Some(timer);
        let is_rearm = is_half || known.is_some_and(|known| known.is_pending);
        *cpu = Cpu { cancelled: None, row: Some(row), ..*cpu };
        let counts = &mut self.rows[row].1;
        counts.arms += 1;
        counts.rearms += u64::from(is_rearm);
        counts.halves += u64::from(is_half);
        counts.distances.add(distance);
        self.timers.insert(timer, Timer { key, pid, row, source, soft, is_pending: true });
    }

    fn source(&mut self, timer: TimerAddr, key: Key, pid: u32, row: usize) -> Option<usize> {
        let name = match Some(key.function) == self.sleeper && pid != 0 {
            true => SourceKey::Thread(pid),
            false => SourceKey::Timer(timer, key.function),
        };
        let place = || {
            self.sources.push(Source { row, vote: Vote::default() });
            self.sources.len() - 1
        };
        (key.family == TimerFamily::Queue)
            .then(|| *self.source_places.entry(name).or_insert_with(place))
    }

    fn cancelled(&mut self, record: &Record, timer: TimerAddr) {
        let cpu = &mut self.cpus[record.cpu.index()];
        cpu.cancelled = None;
        let Some(known) = self.timers.get_mut(&timer) else { return };
        known.is_pending = false;
        *cpu = Cpu { cancelled: Some(timer), row: Some(known.row), ..*cpu };
        self.rows[known.row].1.cancels += 1;
    }

    fn expired(&mut self, record: &Record, timer: TimerAddr, key: Key) {
        let known = self.timers.get_mut(&timer);
        let known = known.filter(|known| known.key.function == key.function);
        let row = match known {
            Some(known) => {
                known.is_pending = false;
                if let Some(source) = known.source {
                    self.sources[source].vote.expired(known.soft);
                }
                known.row
            }
            None => self.row(key),
        };
        let is_tick = self.is_tick(key.function);
        let cpu = &mut self.cpus[record.cpu.index()];
        let counts = &mut self.rows[row].1;
        counts.expiries += 1;
        counts.halves += u64::from(cpu.cancelled == Some(timer));
        let wake = match (cpu.wake, key.family) {
            (Wake::Next, TimerFamily::Queue) => {
                counts.idle_wakeups += 1;
                if is_tick { Wake::Tick(row) } else { Wake::Counted }
            }
            (Wake::Tick(tick), TimerFamily::Wheel) => {
                if record.pid == 0 {
                    counts.idle_wakeups += 1;
                    let tick = &mut self.rows[tick].1.idle_wakeups;
                    *tick = tick.saturating_sub(1);
                }
                Wake::Counted
            }
            (_, TimerFamily::Wheel) => Wake::Counted,
            (wake, TimerFamily::Queue) => wake,
        };
        *cpu = Cpu { cancelled: None, row: Some(row), wake };
    }
}
