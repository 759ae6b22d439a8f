//! A trace and its replay as a timeline, in the JSON format of Perfetto and Chrome.
//!
//! Each CPU is a process with these tracks: when it was idle; its timer interrupts, with the
//! functions of the callbacks in them; and the writes to its timer device, as recorded and under
//! each policy. Times are microseconds since the first event. Open the file in `ui.perfetto.dev`.

use super::script::{self, Inference};
use super::{ReplayPolicy, engine};
use crate::read::{Event, EventKind, Record, Trace};
use serde_json::{Value, json};
use std::io::{self, Write};
use tickless_core::time::{CpuId, Ns};

/// The numbers of a CPU's tracks. The policies have a track each, from `POLICIES` on.
const IDLE: usize = 1;
const TIMERS: usize = 2;
const SOFT_TIMERS: usize = 3;
const RECORDED: usize = 4;
const POLICIES: usize = 5;

/// Writes the timeline of a trace and of its replay under each of these policies. O(n log n), like
/// one replay for each policy.
pub fn write_timeline(
    trace: &Trace,
    policies: &[ReplayPolicy],
    inference: Inference,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut timeline = Timeline { out, is_first: true };
    timeline.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    timeline.names(trace, policies)?;
    timeline.recorded(trace)?;
    let script = script::write(trace, inference);
    for (track, &policy) in (POLICIES..).zip(policies) {
        for (at, cpu) in engine::writes(&script, trace, policy) {
            // A script's times are on the trace's clock, shifted such that ticks begin at multiples
            // of a tick.
            timeline.instant(at.since(script.begins), cpu, track, "write")?;
        }
    }
    timeline.out.write_all(b"\n]}\n")
}

struct Timeline<'a> {
    out: &'a mut dyn Write,
    is_first: bool,
}

#[derive(Clone, Default)]
struct Cpu {
    idle: Option<(Ns, String)>,
    interrupt: Option<(Ns, String)>,
    callback: Option<(Ns, String)>,
    soft_callback: Option<(Ns, String)>,
}

impl Timeline<'_> {
    fn write(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }

    fn instant(&mut self, at: Ns, cpu: CpuId, track: usize, name: &str) -> io::Result<()> {
        let (ts, pid) = (micros(at), process(cpu));
        self.write(&json!({"ph": "i", "s": "t", "name": name, "ts": ts, "pid": pid, "tid": track}))
    }

    fn end(
        &mut self,
        current: &mut Option<(Ns, String)>,
        at: Ns,
        cpu: CpuId,
        track: usize,
    ) -> io::Result<()> {
        let Some((from, name)) = current.take() else { return Ok(()) };
        let (ts, dur, pid) = (micros(from), micros(at.since(from)), process(cpu));
        self.write(&json!({
            "ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": track
        }))
    }

    fn names(&mut self, trace: &Trace, policies: &[ReplayPolicy]) -> io::Result<()> {
        let mut tracks: Vec<String> =
            ["idle", "timer interrupts", "coarse timers", "device writes: recorded"]
                .map(str::to_string)
                .into();
        tracks.extend(policies.iter().map(|policy| format!("device writes: {}", policy.name())));
        for cpu in (0..trace.cpus).map(CpuId) {
            let pid = process(cpu);
            let mut name = |what: &str, track: usize, name: &str| {
                self.write(&json!({
                    "ph": "M", "name": what, "pid": pid, "tid": track, "args": {"name": name}
                }))
            };
            name("process_name", 0, &format!("CPU {}", cpu.0))?;
            for (track, track_name) in (IDLE..).zip(&tracks) {
                name("thread_name", track, track_name)?;
            }
        }
        Ok(())
    }

    fn recorded(&mut self, trace: &Trace) -> io::Result<()> {
        let begins = trace.records.first().map_or(Ns::ZERO, |record| record.time);
        let has_states = trace.count(EventKind::CpuIdle) > 0;
        let mut cpus = vec![Cpu::default(); usize::from(trace.cpus)];
        for record in trace.records.iter() {
            let at = record.time.since(begins);
            let here = record.cpu;
            let Some(cpu) = cpus.get_mut(here.index()) else { continue };
            // Without `cpu_idle` events, a CPU is idle while it runs the idle task.
            let shows_idle = !has_states || record.event.kind() == EventKind::CpuIdle;
            match idle_change(record).filter(|_| shows_idle) {
                Some(Idle::Begins(name)) => {
                    cpu.idle.get_or_insert((at, name));
                }
                Some(Idle::Ends) => self.end(&mut cpu.idle, at, here, IDLE)?,
                None => {}
            }
            let name = |function| trace.names.name(function).to_string();
            match record.event {
                Event::LocalTimerEntry => cpu.interrupt = Some((at, "timer interrupt".to_string())),
                Event::LocalTimerExit => self.end(&mut cpu.interrupt, at, here, TIMERS)?,
                Event::HrtimerExpireEntry { function, .. } => {
                    cpu.callback = Some((at, name(function)));
                }
                Event::HrtimerExpireExit { .. } => self.end(&mut cpu.callback, at, here, TIMERS)?,
                Event::TimerExpireEntry { function, .. } => {
                    cpu.soft_callback = Some((at, name(function)));
                }
                Event::TimerExpireExit { .. } => {
                    self.end(&mut cpu.soft_callback, at, here, SOFT_TIMERS)?;
                }
                _ if record.event.is_device_write() => {
                    self.instant(at, here, RECORDED, "write")?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn micros(ns: Ns) -> f64 {
    ns.0 as f64 / 1e3
}

/// Returns the process number that stands for a CPU in the timeline. It must not be 0.
fn process(cpu: CpuId) -> u64 {
    u64::from(cpu.0) + 1
}

enum Idle {
    Begins(String),
    Ends,
}

/// Returns whether a record shows its CPU idle (`Begins`) or busy (`Ends`); `None` if it shows
/// neither. Events other than `cpu_idle` show the CPU idle if they occur in the idle task.
fn idle_change(record: &Record) -> Option<Idle> {
    let pid = match record.event {
        Event::CpuIdle { cpu, .. } if cpu != record.cpu => return None,
        Event::CpuIdle { state: Some(state), .. } => {
            return Some(Idle::Begins(format!("idle state {state}")));
        }
        Event::CpuIdle { state: None, .. } => return Some(Idle::Ends),
        Event::SchedSwitch { next_pid } => next_pid,
        _ => record.pid,
    };
    Some(if pid == 0 { Idle::Begins("idle".to_string()) } else { Idle::Ends })
}
