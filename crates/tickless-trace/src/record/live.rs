//! A recording that is read while it is recorded.
//!
//! The kernel hands out whole pages of each CPU's buffer as they are, so that reading costs little
//! and nothing is printed. Events are handed on in the order of their times: a reading first asks
//! for the time, then reads every CPU, and keeps back what came later than that.

use super::{Options, RecordError, Recording, Statistics, Tracefs};
use crate::read::binary::{Decoder, Page, Symbols};
use crate::read::{Names, Record};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use tickless_core::time::{CpuId, Ns};

/// Reads a recording while it is recorded. Dropping it removes what it made.
#[derive(Debug)]
pub struct Live {
    cpus: Vec<(CpuId, OwnedFd)>,
    decoder: Decoder,
    page: Vec<u8>,
    /// What came later than the last reading began, and what is read now.
    waiting: Vec<Record>,
    lost: u64,
    read: u64,
    // Dropped last: an instance that is open cannot be removed.
    recording: Recording,
}

/// The events whose fields are read.
const SYSTEMS: [&str; 6] = ["timer", "irq_vectors", "msr", "sched", "power", "task"];

impl Live {
    /// Records from now on. See [`Recording::prepare`] for what is made and who removes it.
    ///
    /// # Errors
    /// When tracefs cannot be used or refuses what was asked for.
    pub fn start(
        tracefs: Tracefs,
        options: &Options,
        program: Option<&Path>,
    ) -> Result<Live, RecordError> {
        let read = |error| RecordError::Read { error };
        let mut decoder = Decoder::new(Symbols::of_this_kernel());
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
        Ok(Live { cpus, decoder, page, waiting: Vec::new(), lost: 0, read: 0, recording })
    }

    /// Hands on what happened since the last reading, in the order of time. Does not block.
    ///
    /// # Errors
    /// When the kernel takes the buffers away.
    pub fn read(&mut self, mut event: impl FnMut(&Record, &Names)) -> Result<(), RecordError> {
        let until = now();
        for at in 0..self.cpus.len() {
            self.read_cpu(at)?;
        }
        self.waiting.sort_by_key(|record| record.time);
        let ready = self.waiting.partition_point(|record| record.time <= until);
        self.waiting.drain(..ready).for_each(|record| event(&record, self.decoder.names()));
        Ok(())
    }

    fn read_cpu(&mut self, at: usize) -> Result<(), RecordError> {
        let (cpu, raw) = &self.cpus[at];
        loop {
            let length = match rustix::io::read(raw, &mut self.page[..]) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(RecordError::Read { error: io::Error::from(errno) }),
            };
            let Some(page) = Page::new(&self.page[..length]) else { continue };
            self.lost += page.lost().unwrap_or(0);
            for (time, event) in page {
                let Some(found) = self.decoder.decode(event, *cpu) else { continue };
                self.read += 1;
                self.waiting.push(Record {
                    time: Ns(time),
                    event: found.event,
                    line: 0,
                    cpu: *cpu,
                    context: found.context,
                    pid: found.pid,
                });
            }
        }
    }

    /// The names of the events' functions, and the functions by their addresses.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// How many events were read.
    pub fn events(&self) -> u64 {
        self.read
    }

    /// How many were lost, because they were not read in time. Asks the kernel.
    pub fn lost(&self) -> u64 {
        // Pages tell of most losses, but not of those behind the last one that was read.
        let Statistics { overwritten, refused, .. } = self.recording.statistics();
        self.lost.max(overwritten + refused)
    }

    /// What is not as it should be, and what was found to do.
    pub fn notes(&self) -> &[String] {
        self.recording.notes()
    }

    /// What the recorder knows a thread's name by that is gone; none if it does not.
    pub fn name_of_gone(&self, pid: u32) -> Option<String> {
        let names = fs::read_to_string(self.recording.root().join("saved_cmdlines")).ok()?;
        let name = |line: &str| line.split_once(' ').map(|(pid, name)| (pid.parse(), name.into()));
        names.lines().filter_map(name).find_map(|(of, name): (Result<u32, _>, String)| {
            (of == Ok(pid) && !name.starts_with("<...>")).then_some(name)
        })
    }
}

/// How long the pages are that the kernel hands out.
fn page_length(instance: &Path) -> usize {
    let kilobytes = fs::read_to_string(instance.join("buffer_subbuf_size_kb")).ok();
    let kilobytes = kilobytes.and_then(|text| text.trim().parse::<usize>().ok());
    kilobytes.map_or(rustix::param::page_size(), |kilobytes| kilobytes * 1024)
}

/// The time on the clock of the recording.
fn now() -> Ns {
    let now = clock_gettime(ClockId::Monotonic);
    Ns(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
}
