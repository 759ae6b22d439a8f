//! Counts timer operations with eBPF programs that are attached to the kernel's tracepoints.
//!
//! The compiled programs of `bpf/top.bpf.c` are part of this crate; `ci/bpf.sh` compiles the source
//! again and checks that the result is the same. The programs read members of kernel structures,
//! whose offsets differ between kernels: the loader finds them in the running kernel's description
//! of its types (BTF). The programs belong to file descriptors of this process, so the kernel
//! removes them when the process ends.

use crate::error::CountError;
use crate::snapshot::{Counts, DISTANCES, Distances, Family, Process, Row, Snapshot, Source, Vote};
use aya::maps::{Array, HashMap as HashTable, MapData, MapError};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::sys::{Stats, enable_stats};
use aya::{Btf, EbpfLoader};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use tickless_core::time::Ns;
use tickless_trace::read::{SLEEPER_FUNCTION, Symbols, TICK_FUNCTIONS};
use tickless_trace::record::kernel_hz;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/top.bpf.o");

/// The eBPF programs, each named after its tracepoint ([`tracepoint`]). Programs that follow
/// interrupts are attached first, so that they know whether the CPU is in an interrupt at the first
/// timer event.
const PROGRAMS: [(&str, Need); 17] = [
    ("local_timer_entry", Need::Wakeups),
    ("local_timer_exit", Need::Wakeups),
    ("irq_handler_entry", Need::Always),
    ("irq_handler_exit", Need::Always),
    ("softirq_entry", Need::Always),
    ("softirq_exit", Need::Always),
    ("sched_switch", Need::Always),
    ("hrtimer_rearm", Need::Writes),
    ("write_msr", Need::OlderWrites),
    ("timer_cancel", Need::Always),
    ("hrtimer_cancel", Need::Always),
    ("timer_expire_entry", Need::Always),
    ("hrtimer_expire_entry", Need::Always),
    ("hrtimer_start_expired", Need::Newer),
    ("timer_start", Need::Always),
    ("hrtimer_start", Need::Newer),
    ("hrtimer_start_older", Need::Older),
];

/// What a program is needed for. If the kernel does not have the program's tracepoint, the counts
/// lack wakeups or device writes; without a program that is needed `Always`, nothing is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Always,
    Wakeups,
    /// Linux since 7.1: the writes of any device.
    Writes,
    /// Before that: writes of the register that is the device of some x86 machines.
    OlderWrites,
    /// What not all kernels have.
    Newer,
    /// In place of the last one, in a kernel without that.
    Older,
}

/// The device that is programmed by writing a register. Other devices are written unseen.
const REGISTER_DEVICE: &str = "lapic-deadline";
const DEVICE: &str = "/sys/devices/system/clockevents/clockevent0/current_device";

/// The number of words of `struct row` in `bpf/top.bpf.c`: a callback, a process with the kind of
/// timer, eight counts, a histogram of distances (counts and sums) and the name of the process.
const ROW_WORDS: usize = 10 + 2 * DISTANCES + 2;
type RowWords = [u64; ROW_WORDS];

/// The layout of `struct source`.
type SourceWords = [u64; 8];

/// The layout of `struct used`.
type UsedWords = [u64; 9];

/// The layout of `struct process`: CPU time, switches, and its name.
type ProcessWords = [u64; 4];

/// The eBPF programs that count timer events in the kernel. Dropping this value removes them.
pub struct Ebpf {
    programs: aya::Ebpf,
    names: Vec<&'static str>,
    symbols: Symbols,
    functions: HashMap<u64, String>,
    process_names: Names,
    sees_device_writes: bool,
    sees_wakeups: bool,
    sample: Sample,
}

impl fmt::Debug for Ebpf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ebpf").field("programs", &self.names).finish_non_exhaustive()
    }
}

/// Estimates the CPU time of the eBPF programs. The kernel measures it only now and then, in
/// samples, because measuring takes time, too.
#[derive(Debug, Default)]
struct Sample {
    /// While a sample runs: the file descriptor that keeps the kernel's measuring switched on, the
    /// time when the sample began, and the programs' run time until then.
    running: Option<(OwnedFd, u64, u64)>,
    measured_ns: u64,
    of_ns: u64,
    ended: u64,
    kernel_ns: u64,
}

/// The callback of deadline tasks, and of the servers that keep other tasks from starving.
const DEADLINE_FUNCTION: &str = "dl_task_timer";

/// The tick rate that is assumed if the kernel's configuration cannot be read.
const DEFAULT_HZ: u32 = 250;

/// How long the CPU time of the eBPF programs themselves is sampled, and how long not, in turn.
const SAMPLE_NS: u64 = 50_000_000;
const PAUSE_NS: u64 = 450_000_000;

impl Ebpf {
    /// Loads and attaches the programs, which count from then on. Takes some 50 ms, mostly for the
    /// kernel's check of the programs.
    pub fn start() -> Result<Ebpf, CountError> {
        if !rustix::process::geteuid().is_root() {
            return Err(CountError::NotPermitted);
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(CountError::NoBtf);
        }
        let refused = |what: &str, why: &dyn fmt::Display| match is_locked_down() {
            true => CountError::LockedDown,
            false => CountError::Refused { what: what.to_string(), why: why.to_string() },
        };
        let types = Btf::from_sys_fs().map_err(|error| refused("its own types", &chain(&error)))?;
        let symbols = Symbols::of_this_kernel();
        let address = |name: &str| symbols.address(name).unwrap_or(0);
        let sleeper = address(SLEEPER_FUNCTION);
        let [tick_now, tick_before] = TICK_FUNCTIONS.map(address);
        if sleeper == 0 {
            return Err(CountError::NoSymbols);
        }
        let tick_ns = 1_000_000_000 / u64::from(kernel_hz().unwrap_or(DEFAULT_HZ));
        let ahead = time(ClockId::Realtime).since(time(ClockId::Monotonic)).0;
        let mut programs = EbpfLoader::new()
            .btf(Some(&types))
            .override_global("tick_function", &tick_now, true)
            .override_global("tick_function_older", &tick_before, true)
            .override_global("deadline_function", &address(DEADLINE_FUNCTION), true)
            .override_global("sleeper_function", &sleeper, true)
            .override_global("tick_ns", &tick_ns, true)
            .override_global("realtime_offset_ns", &ahead, true)
            .load(OBJECT)
            .map_err(|error| refused("the tables", &chain(&error)))?;
        let mut names = Vec::new();
        let device = fs::read_to_string(DEVICE).unwrap_or_default();
        let (mut sees_device_writes, mut sees_wakeups) = (false, true);
        for (name, need) in PROGRAMS {
            let is_device = device.trim() == REGISTER_DEVICE;
            let is_replaced = match need {
                Need::OlderWrites => sees_device_writes || !is_device,
                Need::Older => names.contains(&tracepoint(name)),
                _ => false,
            };
            if is_replaced {
                continue;
            }
            match attach(&mut programs, name, &types) {
                Ok(()) => {
                    sees_device_writes |= matches!(need, Need::Writes | Need::OlderWrites);
                    names.push(name);
                }
                Err(_) if need == Need::Wakeups => sees_wakeups = false,
                Err(_) if matches!(need, Need::Writes | Need::OlderWrites | Need::Newer) => {}
                Err(error) => return Err(refused(name, &chain(&error))),
            }
        }
        Ok(Ebpf {
            programs,
            names,
            symbols,
            functions: HashMap::new(),
            process_names: Names::default(),
            sees_device_writes,
            sees_wakeups,
            sample: Sample::default(),
        })
    }

    /// Detaches a program, so that its tracepoint is not seen any more.
    #[doc(hidden)]
    pub fn detach(&mut self, name: &str) -> Result<(), ProgramError> {
        let program = self.programs.program_mut(name).ok_or(ProgramError::NotLoaded)?;
        let program: &mut BtfTracePoint = program.try_into()?;
        self.names.retain(|it| *it != name);
        program.unload()
    }

    /// Ends the current sample of the programs' CPU time after 50 ms, or begins the next
    /// sample 450 ms after the last one. Call this several times a second.
    pub fn poll(&mut self) {
        let now = time(ClockId::Monotonic).0;
        match self.sample.running.take() {
            Some((measuring, since, before)) if now - since >= SAMPLE_NS => {
                let ran = self.run_time().saturating_sub(before);
                drop(measuring);
                let sample = &mut self.sample;
                sample.measured_ns += ran;
                sample.of_ns += now - since;
                sample.kernel_ns += scaled(ran, now - since, now - sample.ended.min(since));
                sample.ended = now;
            }
            Some(running) => self.sample.running = Some(running),
            None => {
                if self.sample.ended == 0 {
                    self.sample.ended = now;
                }
                if self.sample.of_ns == 0 || now - self.sample.ended >= PAUSE_NS {
                    let measuring = enable_stats(Stats::RunTime).ok();
                    let before = self.run_time();
                    self.sample.running = measuring.map(|measuring| (measuring, now, before));
                }
            }
        }
    }

    /// Returns the run time that the kernel has measured for all programs, in nanoseconds.
    fn run_time(&self) -> u64 {
        self.attached().filter_map(|it| Some(it.info().ok()?.run_time().as_nanos() as u64)).sum()
    }

    fn attached(&self) -> impl Iterator<Item = &BtfTracePoint> {
        self.names.iter().filter_map(|name| self.programs.program(name)?.try_into().ok())
    }

    /// Returns how often the kernel has not run a program, because the program was already running
    /// on that CPU (Linux since 5.12 counts that).
    fn skipped(&self) -> u64 {
        let of = |program: &BtfTracePoint| {
            let fd = program.fd().ok()?.as_fd().as_raw_fd();
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
            info.lines()
                .find_map(|line| line.strip_prefix("recursion_misses:")?.trim().parse::<u64>().ok())
        };
        self.attached().filter_map(of).sum::<u64>()
    }

    /// Reads the counters of the eBPF programs.
    pub fn snapshot(&mut self) -> Result<Snapshot, CountError> {
        self.poll();
        let at = time(ClockId::Monotonic);
        let used: Vec<UsedWords> = self.words("used", 1)?;
        let [rows_used, rows_refused, sources_used, sources_refused, failed, ..] = used[0];
        let [.., forgotten, unseen_ns, unseen_after] = used[0];
        let rows: Vec<RowWords> = self.words("rows", rows_used)?;
        let sources: Vec<SourceWords> = self.words("sources", sources_used)?;
        let now = at.0;
        let Sample { kernel_ns, measured_ns, of_ns, ended, .. } = self.sample;
        let since = now.saturating_sub(ended);
        let kernel_ns = (of_ns > 0).then(|| kernel_ns + scaled(measured_ns, of_ns, since));
        Ok(Snapshot {
            at,
            rows: rows.iter().map(|words| self.row(words)).collect(),
            processes: self.processes()?,
            sources: sources.iter().map(source).collect(),
            sees_device_writes: self.sees_device_writes,
            sees_wakeups: self.sees_wakeups,
            refused: rows_refused + sources_refused + forgotten,
            missed: failed + self.skipped(),
            unseen_ns,
            unseen_after: self.process_names.name(unseen_after as u32, String::new),
            own_ns: time(ClockId::ProcessCPUTime).0,
            kernel_ns,
        })
    }

    /// Reads the first elements of a table of the eBPF programs.
    fn words<V: aya::Pod>(&self, name: &str, count: u64) -> Result<Vec<V>, CountError> {
        let map = self.programs.map(name).ok_or_else(|| unreadable(&"no such table"))?;
        let read = |map: Array<&MapData, V>| (0..count as u32).map(|at| map.get(&at, 0)).collect();
        map.try_into().and_then(read).map_err(|error: MapError| unreadable(&error))
    }

    /// Reads the CPU time and the switches of all processes that ran.
    fn processes(&mut self) -> Result<BTreeMap<u32, Process>, CountError> {
        let map = self.programs.map("processes").ok_or_else(|| unreadable(&"no such table"))?;
        let map: HashTable<&MapData, u32, ProcessWords> =
            map.try_into().map_err(|error: MapError| unreadable(&error))?;
        let mut found = BTreeMap::new();
        for entry in map.iter() {
            let (pid, [cpu_ns, switches, name @ ..]) = entry.map_err(|error| unreadable(&error))?;
            let name = self.process_names.name(pid, || text(&name));
            found.insert(pid, Process { name, cpu_ns, switches });
        }
        Ok(found)
    }

    /// Converts the words of a row: see `struct row` in `bpf/top.bpf.c`.
    fn row(&mut self, words: &RowWords) -> Row {
        let [
            function,
            process,
            arms,
            cancels,
            halves,
            rearms,
            expiries,
            idle_wakeups,
            writes,
            unseen,
            ..,
        ] = *words;
        let mut distances = Distances::default();
        distances.counts.copy_from_slice(&words[10..10 + DISTANCES]);
        distances.sums.copy_from_slice(&words[10 + DISTANCES..10 + 2 * DISTANCES]);
        let (pid, is_wheel) = (process as u32, process >> 32 != 0);
        let gone = || text(&words[10 + 2 * DISTANCES..]);
        let symbols = &self.symbols;
        let named = || symbols.name(function).unwrap_or("?").to_string();
        Row {
            pid,
            process: self.process_names.name(pid, gone),
            function: self.functions.entry(function).or_insert_with(named).clone(),
            family: if is_wheel { Family::Wheel } else { Family::Queue },
            counts: Counts {
                arms,
                cancels,
                halves,
                rearms,
                expiries,
                idle_wakeups,
                device_writes: writes,
                unseen,
                distances,
            },
        }
    }
}

/// The names of processes, which are read once.
#[derive(Debug, Default)]
struct Names(HashMap<u32, String>);

impl Names {
    /// Returns the name of a process, which is read once from `/proc`. If the process has ended,
    /// returns the name that `ended` returns.
    fn name(&mut self, process: u32, ended: impl FnOnce() -> String) -> String {
        if process == 0 {
            return "kernel".to_string();
        }
        let name = || {
            let name = fs::read_to_string(format!("/proc/{process}/comm"));
            name.map_or_else(|_| ended(), |name| name.trim_end().to_string())
        };
        let name = self.0.entry(process).or_insert_with(name);
        // Processes choose their names. Control characters in a name could command the terminal.
        name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

/// Returns the text of which these words are the bytes, up to the first zero.
fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn source(words: &SourceWords) -> Source {
    let [period, votes, hits, distances, last, row, ..] = *words;
    Source { row: row as usize, vote: Vote { period, votes, hits, distances, last } }
}

/// Returns the tracepoint of a program.
fn tracepoint(program: &str) -> &str {
    program.trim_end_matches("_older")
}

fn attach(programs: &mut aya::Ebpf, name: &'static str, types: &Btf) -> Result<(), ProgramError> {
    let missing = || ProgramError::NotLoaded;
    let program: &mut BtfTracePoint = programs.program_mut(name).ok_or_else(missing)?.try_into()?;
    program.load(tracepoint(name), types)?;
    program.attach()?;
    Ok(())
}

/// Extrapolates a time that was measured within `of` nanoseconds to `all` nanoseconds.
fn scaled(measured: u64, of: u64, all: u64) -> u64 {
    (u128::from(measured) * u128::from(all) / u128::from(of.max(1))) as u64
}

fn time(clock: ClockId) -> Ns {
    let now = clock_gettime(clock);
    Ns(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
}

fn unreadable(why: &dyn fmt::Display) -> CountError {
    CountError::Refused { what: "to hand over the counts".to_string(), why: why.to_string() }
}

/// Returns whether the kernel is locked down so far that even root cannot read its memory.
fn is_locked_down() -> bool {
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    lockdown.contains("[confidentiality]")
}

/// Returns an error's text with the texts of its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text += &format!(": {inner}");
        source = inner.source();
    }
    // Keep the first line: on further lines, the kernel's verifier lists all instructions.
    text.lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_to_print() {
        let mut names = Names::default();
        assert!(!names.name(std::process::id(), String::new).is_empty());
        assert_eq!(names.name(u32::MAX, || "a\u{1b}b".to_string()), "a?b");
        assert_eq!(names.name(0, String::new), "kernel");
    }
}
