//! `perf.data`, which perf records to a file or through a pipe.

use super::bytes::{Bytes, from};
use super::head::{self, Head};
use super::symbols::{Symbols, build_id_of_this_kernel};
use crate::read::Trace;
use crate::read::header::Format;
use crate::read::prefix;
use crate::read::problem::{Cause, Unusable};
use crate::read::reader::Reader;
use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{DsoKey, Feature, PerfFileReader, PerfFileRecord};
use std::collections::HashMap;
use std::io::Cursor;
use tickless_core::time::Ns;

/// The beginning of the name that perf gives to the kernel's own code. The name of a symbol may
/// follow, as in `[kernel.kallsyms]_text`.
const KERNEL_MAP: &[u8] = b"[kernel.kallsyms]";

const MAGIC: &[u8] = b"PERFILE2";
const MAGIC_BIG_ENDIAN: &[u8] = b"2ELIFREP";

pub(in crate::read) fn is_perf_data(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || head.starts_with(MAGIC_BIG_ENDIAN)
}

pub(in crate::read) fn read(path: &str, file: &[u8]) -> Result<Trace, Unusable> {
    let damaged = || Unusable::DamagedBinary("perf.data");
    let convert = |what| Unusable::Convert { what, with: "perf script -i" };
    if file.starts_with(MAGIC_BIG_ENDIAN) {
        return Err(convert("recorded by perf on a big-endian machine"));
    }
    has_sound_lengths(file).ok_or_else(damaged)?;
    let PerfFileReader { mut perf_file, mut record_iter } =
        PerfFileReader::parse_file(Cursor::new(file)).map_err(|_| damaged())?;
    if matches!(perf_file.compression_info(), Ok(Some(_))) {
        return Err(convert("recorded by perf with -z"));
    }
    let mut formats =
        Bytes(perf_file.feature_section_data(Feature::TRACING_DATA).ok_or_else(damaged)?);
    head::start(&mut formats).ok_or_else(damaged)?;
    let Head { decoder, symbols, .. } = head::read(formats).ok_or_else(damaged)?;
    let mut reader = Reader::new(Format::Perf, symbols);
    reader.header.kernel = perf_file.os_release().ok().flatten().map(str::to_string);
    let cpus = perf_file.nr_cpus().ok().flatten().map(|cpus| cpus.nr_cpus_online);
    reader.header.cpus = cpus.and_then(|cpus| u16::try_from(cpus).ok());
    let mut tasks: HashMap<u32, Box<str>> = HashMap::new();
    let recorded = perf_file.build_ids().ok().and_then(|mut ids| ids.remove(&DsoKey::Kernel));
    let is_this_kernel = recorded.is_some_and(|dso| is_of_this_kernel(&dso.build_id));
    let mut has_names = false;
    // In a file that was cut, this fails at the end. The records before it are used.
    while let Ok(Some(record)) = record_iter.next_record(&mut perf_file) {
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        match record.parse() {
            Ok(EventRecord::Sample(sample)) => {
                let (Some(raw), Some(time)) = (sample.raw, sample.timestamp) else { continue };
                let cpu = sample.cpu.and_then(|cpu| prefix::cpu_id(cpu.into()));
                if let Some(cpu) = cpu {
                    reader.binary_event(Ns(time), cpu, &raw.as_slice(), &decoder);
                }
            }
            Ok(EventRecord::Comm(comm)) => {
                let name = String::from_utf8_lossy(&comm.name.as_slice()).into_owned();
                tasks.insert(comm.tid.cast_unsigned(), name.into());
            }
            // A perf.data has the addresses of functions and not their names. Take the names from
            // the running kernel, if it is the recorded kernel and was loaded at the same address.
            Ok(EventRecord::Mmap(map))
                if is_this_kernel && map.path.as_slice().starts_with(KERNEL_MAP) =>
            {
                let symbols = Symbols::of_this_kernel();
                has_names = symbols.address("_text") == Some(map.address)
                    || symbols.address("_stext") == Some(map.address);
                if has_names {
                    reader.names.set_symbols(symbols);
                }
            }
            Ok(EventRecord::Lost(lost)) => reader.lose(Some(lost.count)),
            _ => {}
        }
    }
    if !has_names {
        reader.note_file(Cause::NoFunctionNames);
    }
    reader.finish_binary(path, tasks)
}

/// Returns whether this is the running kernel's build ID. Perf may append zeroes to an ID.
fn is_of_this_kernel(build_id: &[u8]) -> bool {
    build_id_of_this_kernel().is_some_and(|ours| build_id.starts_with(&ours))
}

/// Returns `None` if a length in the file exceeds the file. The crate that reads perf.data
/// allocates by these lengths before it reads, so a damaged one could exhaust the memory.
fn has_sound_lengths(file: &[u8]) -> Option<()> {
    const HEADER_LEN: u64 = 104;
    const ATTRIBUTE_LEN_MAX: u64 = 4_096;
    const EVENT_DESC: u32 = 12;
    let part = |offset: u64, size: u64| from(file, offset)?.take_u64(size);
    let mut header = Bytes(file);
    header.take(MAGIC.len())?;
    let (_size, attribute) = (header.u64()?, header.u64()?);
    if header.0.len() as u64 + 24 < HEADER_LEN || attribute > ATTRIBUTE_LEN_MAX {
        return None;
    }
    let mut sections = [(0, 0); 3];
    for section in &mut sections {
        *section = (header.u64()?, header.u64()?);
    }
    let [attributes, data, types] = sections;
    part(attributes.0, attributes.1)?;
    part(types.0, types.1)?;
    // The list of features follows the data.
    let mut list = from(file, data.0.checked_add(data.1)?)?;
    for word in 0..4 {
        let features = header.u64()?;
        for bit in (0..64).filter(|bit| features >> bit & 1 != 0) {
            let section = part(list.u64()?, list.u64()?)?;
            if word * 64 + bit == EVENT_DESC {
                has_sound_events(Bytes(section))?;
            }
        }
    }
    Some(())
}

/// Returns `None` if a length in `section`, which describes the events, exceeds the rest of the
/// section.
fn has_sound_events(mut section: Bytes<'_>) -> Option<()> {
    let (count, attribute) = (section.u32()?, section.u32()?);
    if u64::from(count) * u64::from(attribute.max(1)) > section.0.len() as u64 {
        return None;
    }
    for _ in 0..count {
        section.take(attribute as usize)?;
        let ids = section.u32()?;
        section.sized_u32()?;
        section.take_u64(u64::from(ids) * 8)?;
    }
    Some(())
}
