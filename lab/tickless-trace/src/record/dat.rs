//! Writes a recording as a `trace.dat` of version 6, which `trace-cmd report` and KernelShark open.
//! The manual page `trace-cmd.dat.v6(5)` describes the format.
//!
//! The file has the formats of the recorded events as this kernel describes them, the names of its
//! functions and of recent threads, and the pages of each CPU's buffer as the kernel filled them.

use crate::read::{FLYRECORD, MAGIC, OPTIONS, OptionId};
use crate::record::error::RecordError;
use crate::record::kernel;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes what the buffers of `instance` hold, which empties them. Replaces the content of `file`,
/// which must be a regular file.
pub(super) fn write(tracefs: &Path, instance: &Path, file: &File) -> Result<(), RecordError> {
    let page = rustix::param::page_size();
    let describe = |file: &str| read_once(&tracefs.join(file)).map_err(RecordError::Read);
    let buffer = |cpu: u32| instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
    let buffers: Vec<_> = (0..).map(buffer).take_while(|buffer| buffer.exists()).collect();
    let symbols = functions(&fs::read_to_string("/proc/kallsyms").unwrap_or_default());
    // The format's magic number, and its version.
    let mut head = [MAGIC, b"6\0"].concat();
    head.extend([u8::from(cfg!(target_endian = "big")), size_of::<usize>() as u8]);
    head.extend((page as u32).to_ne_bytes());
    head.extend(b"header_page\0");
    put(&mut head, &describe("events/header_page")?);
    head.extend(b"header_event\0");
    put(&mut head, &describe("events/header_event")?);
    // No events of ftrace itself.
    head.extend(0_u32.to_ne_bytes());
    let systems = formats(instance).map_err(RecordError::Read)?;
    head.extend((systems.len() as u32).to_ne_bytes());
    for (system, formats) in systems {
        head.extend(system.as_bytes());
        head.push(0);
        head.extend((formats.len() as u32).to_ne_bytes());
        formats.iter().for_each(|format| put(&mut head, format));
    }
    head.extend((symbols.len() as u32).to_ne_bytes());
    head.extend(symbols.as_bytes());
    // No formats of trace_printk.
    head.extend(0_u32.to_ne_bytes());
    put(&mut head, &fs::read(tracefs.join("saved_cmdlines")).unwrap_or_default());
    head.extend((buffers.len() as u32).to_ne_bytes());
    let cpus = buffers.len() as u32;
    let uname = format!("Linux - {} {}\0", kernel::release(), std::env::consts::ARCH);
    head.extend(OPTIONS);
    for (option, data) in [
        (OptionId::Clock, &b"[mono]\0"[..]),
        (OptionId::Uname, uname.as_bytes()),
        (OptionId::Cpus, &cpus.to_ne_bytes()),
    ] {
        head.extend((option as u16).to_ne_bytes());
        head.extend((data.len() as u32).to_ne_bytes());
        head.extend(data);
    }
    head.extend((OptionId::Done as u16).to_ne_bytes());
    head.extend(FLYRECORD);
    write_buffers(&head, &buffers, page, BufWriter::new(file)).map_err(RecordError::Output)
}

/// Writes the file's head, a table with the position of each CPU's pages, and the pages.
fn write_buffers(
    head: &[u8],
    buffers: &[PathBuf],
    page: usize,
    mut out: impl Write + Seek,
) -> io::Result<()> {
    let table = head.len() as u64;
    let mut at = (table + 16 * buffers.len() as u64).next_multiple_of(page as u64);
    let mut places = Vec::new();
    out.write_all(head)?;
    out.seek(SeekFrom::Start(at))?;
    for buffer in buffers {
        let size = copy_pages(buffer, page, &mut out)?;
        places.extend([at, size].map(u64::to_ne_bytes).concat());
        at += size;
    }
    out.seek(SeekFrom::Start(table))?;
    out.write_all(&places)?;
    out.flush()
}

/// Copies the pages of one CPU's buffer to `out`. Returns the number of copied bytes.
fn copy_pages(buffer: &Path, page: usize, out: &mut impl Write) -> io::Result<u64> {
    // A reader of an empty buffer would wait for more events.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut buffer = File::options().read(true).custom_flags(flags).open(buffer)?;
    let mut bytes = vec![0; page];
    let mut size = 0;
    loop {
        match buffer.read(&mut bytes) {
            Ok(0) => return Ok(size),
            Ok(read) => bytes[read..].fill(0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(size),
            Err(error) => return Err(error),
        }
        out.write_all(&bytes)?;
        size += page as u64;
    }
}

/// Reads a small tracefs file with a single call. A second read of such a file would return
/// nothing, even if the first one had no room for all.
fn read_once(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 1 << 16];
    let read = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn put(head: &mut Vec<u8>, text: &[u8]) {
    head.extend((text.len() as u64).to_ne_bytes());
    head.extend(text);
}

/// Returns the formats of the events that an instance records, by system (such as `timer`).
fn formats(instance: &Path) -> io::Result<BTreeMap<String, Vec<Vec<u8>>>> {
    let mut systems: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for system in fs::read_dir(instance.join("events"))?.flatten() {
        for event in fs::read_dir(system.path()).into_iter().flatten().flatten() {
            let enabled = fs::read_to_string(event.path().join("enable")).unwrap_or_default();
            if enabled.starts_with('1') {
                let format = fs::read(event.path().join("format"))?;
                let name = system.file_name().to_string_lossy().into_owned();
                systems.entry(name).or_default().push(format);
            }
        }
    }
    Ok(systems)
}

/// Returns the lines of `/proc/kallsyms` about functions, whose addresses occur in events.
fn functions(symbols: &str) -> String {
    let is_function =
        |line: &&str| line.split(' ').nth(1).is_some_and(|kind| "tTwW".contains(kind));
    symbols.split_inclusive('\n').filter(is_function).collect()
}
