//! Reads a recording while the kernel still adds to it.
//!
//! The kernel returns whole pages of each CPU's buffer unchanged, so that reading costs little. The
//! caller gets events in order of time. For this, a reading first notes the current time, then
//! reads the buffers one by one, and keeps events later than that time for the next reading.
//! Otherwise the caller could get an event from the last buffer before an earlier event that was
//! added to the first buffer after that buffer had been read.

use super::{Options, RecordError, Recording, Statistics, Tracefs};
use crate::read::binary::{Decoder, Page, Symbols};
use crate::read::{Names, Record};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use tickless_core::time::{CpuId, Ns};

/// Reads a recording while the kernel still adds to it. Dropping it removes its buffers.
#[derive(Debug)]
pub struct Live {
    cpus: Vec<(CpuId, OwnedFd)>,
    decoder: Decoder,
    names: Names,
    page: Vec<u8>,
    /// Events that were read but not yet passed to the caller, because events with an earlier time
    /// may still be read.
    waiting: Vec<Record>,
    lost: u64,
    read: u64,
    // Dropped last: an instance with open files cannot be removed.
    recording: Recording,
}

/// The groups of tracepoints (folders in `events`) whose events are decoded.
const SYSTEMS: [&str; 6] = ["timer", "irq_vectors", "msr", "sched", "power", "task"];

impl Live {
    /// Starts recording. See [`Recording::prepare`] for what it creates, and how that is removed.
    pub fn start(
        tracefs: Tracefs,
        options: &Options,
        program: Option<&Path>,
    ) -> Result<Live, RecordError> {
        let read = RecordError::Read;
        let mut decoder = Decoder::default();
        for system in SYSTEMS {
            let events = fs::read_dir(tracefs.root().join("events").join(system));
            for event in events.into_iter().flatten().flatten() {
                if let Ok(text) = fs::read_to_string(event.path().join("format")) {
                    decoder.add_format(&text);
                }
            }
        }
        let recording = Recording::prepare(tracefs, options, program)?;
        let mut cpus = Vec::new();
        for entry in fs::read_dir(recording.path().join("per_cpu")).map_err(read)? {
            let entry = entry.map_err(read)?;
            let name = entry.file_name().into_string().unwrap_or_default();
            let Some(cpu) = name.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok()) else {
                continue;
            };
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let raw = open(entry.path().join("trace_pipe_raw"), flags, Mode::empty());
            cpus.push((CpuId(cpu), raw.map_err(|errno| read(errno.into()))?));
        }
        cpus.sort_by_key(|(cpu, _)| *cpu);
        recording.start()?;
        let page = vec![0; page_length(recording.path())];
        let names = Names::new(Symbols::of_this_kernel());
        Ok(Live { cpus, decoder, names, page, waiting: Vec::new(), lost: 0, read: 0, recording })
    }

    /// Passes the events since the last reading to `event`, in the order of time. Does not block.
    pub fn read(&mut self, mut event: impl FnMut(&Record, &Names)) -> Result<(), RecordError> {
        let until = now();
        for at in 0..self.cpus.len() {
            self.read_cpu(at)?;
        }
        self.waiting.sort_by_key(|record| record.time);
        let ready = self.waiting.partition_point(|record| record.time <= until);
        self.waiting.drain(..ready).for_each(|record| event(&record, &self.names));
        Ok(())
    }

    fn read_cpu(&mut self, at: usize) -> Result<(), RecordError> {
        let (cpu, raw) = &self.cpus[at];
        loop {
            let length = match rustix::io::read(raw, &mut self.page[..]) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(RecordError::Read(errno.into())),
            };
            let bytes = &self.page[..length];
            let Some(mut page) = Page::new(bytes) else { continue };
            self.lost += page.lost().unwrap_or(0);
            while let Some((time, event)) = page.next(bytes) {
                let event = &bytes[event];
                let record = self.decoder.decode(Ns(time), *cpu, event, &mut self.names);
                self.read += u64::from(record.is_some());
                self.waiting.extend(record);
            }
        }
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    pub fn events(&self) -> u64 {
        self.read
    }

    /// Returns the number of events that were lost because they were not read in time. Reads the
    /// kernel's counts.
    pub fn lost(&self) -> u64 {
        // Each page reports the events that were lost before it. Those lost after the last page
        // are only in the kernel's counts.
        let Statistics { overwritten, refused, .. } = self.recording.statistics();
        self.lost.max(overwritten + refused)
    }

    pub fn notes(&self) -> &[String] {
        self.recording.notes()
    }

    /// Returns the name of a thread that has ended, if the kernel saved it with the trace.
    pub fn name_of_ended(&self, pid: u32) -> Option<String> {
        let names = fs::read_to_string(self.recording.root().join("saved_cmdlines")).ok()?;
        let name = |line: &str| line.split_once(' ').map(|(pid, name)| (pid.parse(), name.into()));
        names.lines().filter_map(name).find_map(|(of, name): (Result<u32, _>, String)| {
            (of == Ok(pid) && !name.starts_with("<...>")).then_some(name)
        })
    }
}

fn page_length(instance: &Path) -> usize {
    let kilobytes = fs::read_to_string(instance.join("buffer_subbuf_size_kb")).ok();
    let kilobytes = kilobytes.and_then(|text| text.trim().parse::<usize>().ok());
    kilobytes.map_or(rustix::param::page_size(), |kilobytes| kilobytes * 1024)
}

fn now() -> Ns {
    let now = clock_gettime(ClockId::Monotonic);
    Ns(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
}
