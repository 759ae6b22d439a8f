//! A trace and its replay in time, for the viewers that exist: Perfetto's and Chrome's JSON.
//!
//! Each CPU is a process with tracks: when it was idle; its timer interrupts, with the callbacks
//! in them by their functions; what was written to its timer device, as recorded and under each
//! policy. Times are microseconds since the first event. Open the file in `ui.perfetto.dev`.

use super::script::{self, Inference};
use super::{ReplayPolicy, engine};
use crate::read::{CPU_IDLE_EXIT, Event, EventKind, Record, Trace};
use serde_json::{Value, json};
use std::io::{self, Write};
use tickless_core::time::{CpuId, Ns, Tick};

/// The tracks of a CPU; those of the policies follow.
const IDLE: u64 = 1;
const TIMERS: u64 = 2;
const SOFT_TIMERS: u64 = 3;
const RECORDED: u64 = 4;
const POLICIES: u64 = 5;

/// Writes the timeline of a trace under these policies. O(n log n), as a replay for each policy.
///
/// # Errors
/// When `out` refuses it.
pub fn write_timeline(
    trace: &Trace,
    policies: &[ReplayPolicy],
    inference: Inference,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut events = Events { out, is_first: true };
    events.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    names(trace, policies, &mut events)?;
    recorded(trace, &mut events)?;
    let script = script::write(trace, inference);
    let tick = trace.hz.and_then(|hz| Tick::new(hz.tick().to_duration()).ok()).unwrap_or_default();
    for (track, &policy) in (POLICIES..).zip(policies) {
        for (at, cpu) in engine::writes(&script, trace.cpus, tick, policy) {
            // The script's clock is the trace's, shifted.
            events.instant(at.since(script.begins), cpu, track, "write")?;
        }
    }
    events.out.write_all(b"\n]}\n")
}

/// Events with commas between them.
struct Events<'a> {
    out: &'a mut dyn Write,
    is_first: bool,
}

impl Events<'_> {
    fn write(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }

    fn instant(&mut self, at: Ns, cpu: CpuId, track: u64, name: &str) -> io::Result<()> {
        let (ts, pid) = (micros(at), process(cpu));
        self.write(&json!({"ph": "i", "s": "t", "name": name, "ts": ts, "pid": pid, "tid": track}))
    }

    fn slice(&mut self, from: Ns, to: Ns, cpu: CpuId, track: u64, name: &str) -> io::Result<()> {
        let (ts, dur, pid) = (micros(from), micros(to.since(from)), process(cpu));
        self.write(&json!({
            "ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": track
        }))
    }
}

fn micros(ns: Ns) -> f64 {
    ns.0 as f64 / 1e3
}

/// A process may not be 0.
fn process(cpu: CpuId) -> u64 {
    u64::from(cpu.0) + 1
}

/// What processes and tracks are called.
fn names(trace: &Trace, policies: &[ReplayPolicy], events: &mut Events<'_>) -> io::Result<()> {
    for cpu in (0..trace.cpus).map(CpuId) {
        let pid = process(cpu);
        let mut name = |what: &str, track: u64, name: String| {
            events.write(&json!({
                "ph": "M", "name": what, "pid": pid, "tid": track, "args": {"name": name}
            }))
        };
        name("process_name", 0, format!("CPU {}", cpu.0))?;
        name("thread_name", IDLE, "idle".to_string())?;
        name("thread_name", TIMERS, "timer interrupts".to_string())?;
        name("thread_name", SOFT_TIMERS, "coarse timers".to_string())?;
        name("thread_name", RECORDED, "device writes: recorded".to_string())?;
        for (track, policy) in (POLICIES..).zip(policies) {
            name("thread_name", track, format!("device writes: {}", policy.name()))?;
        }
    }
    Ok(())
}

/// What is under way on a CPU: since when.
#[derive(Clone, Default)]
struct Cpu<'a> {
    idle: Option<(Ns, String)>,
    interrupt: Option<Ns>,
    callback: Option<(Ns, &'a str)>,
    soft_callback: Option<(Ns, &'a str)>,
}

/// What the trace says that happened.
fn recorded(trace: &Trace, events: &mut Events<'_>) -> io::Result<()> {
    let begins = trace.records.first().map_or(Ns::ZERO, |record| record.time);
    let told_by = match trace.count(EventKind::CpuIdle) {
        0 => ToldBy::Task,
        _ => ToldBy::States,
    };
    let mut cpus = vec![Cpu::default(); usize::from(trace.cpus)];
    for record in &trace.records {
        let at = record.time.since(begins);
        let here = record.cpu;
        let Some(cpu) = cpus.get_mut(here.index()) else { continue };
        match idle(&record, told_by) {
            Some(Idle::Begins(name)) if cpu.idle.is_none() => cpu.idle = Some((at, name)),
            Some(Idle::Ends) => {
                if let Some((from, name)) = cpu.idle.take() {
                    events.slice(from, at, here, IDLE, &name)?;
                }
            }
            _ => {}
        }
        match record.event {
            Event::LocalTimerEntry => cpu.interrupt = Some(at),
            Event::LocalTimerExit => {
                if let Some(from) = cpu.interrupt.take() {
                    events.slice(from, at, here, TIMERS, "timer interrupt")?;
                }
            }
            Event::HrtimerExpireEntry { function, .. } => {
                cpu.callback = Some((at, trace.names.name(function)));
            }
            Event::HrtimerExpireExit { .. } => {
                if let Some((from, name)) = cpu.callback.take() {
                    events.slice(from, at, here, TIMERS, name)?;
                }
            }
            Event::TimerExpireEntry { function, .. } => {
                cpu.soft_callback = Some((at, trace.names.name(function)));
            }
            Event::TimerExpireExit { .. } => {
                if let Some((from, name)) = cpu.soft_callback.take() {
                    events.slice(from, at, here, SOFT_TIMERS, name)?;
                }
            }
            _ if record.event.is_device_write() => {
                events.instant(at, here, RECORDED, "write")?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What tells that a CPU idles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToldBy {
    /// `cpu_idle` events.
    States,
    /// The idle task.
    Task,
}

enum Idle {
    Begins(String),
    Ends,
}

/// Whether a CPU's idling begins or ends here. Without `cpu_idle` events, a CPU idles while what
/// happens on it happens in the idle task.
fn idle(record: &Record, told_by: ToldBy) -> Option<Idle> {
    match record.event {
        Event::CpuIdle { state: CPU_IDLE_EXIT, cpu } if cpu == record.cpu => Some(Idle::Ends),
        Event::CpuIdle { state, cpu } if cpu == record.cpu => {
            Some(Idle::Begins(format!("idle state {state}")))
        }
        _ if told_by == ToldBy::States => None,
        Event::SchedSwitch { next_pid: 0, .. } => Some(Idle::Begins("idle".to_string())),
        Event::SchedSwitch { .. } => Some(Idle::Ends),
        _ if record.pid == 0 => Some(Idle::Begins("idle".to_string())),
        _ => Some(Idle::Ends),
    }
}
