//! Decodes the bytes of an event to a [`Record`].

use super::format::{Field, Format};
use crate::read::Record;
use crate::read::attributes::Context;
use crate::read::build::Fields;
use crate::read::event::EventKind;
use crate::read::names::Names;
use crate::read::problem::Cause;
use std::collections::HashMap;
use tickless_core::time::{CpuId, Ns};

#[derive(Debug, Default)]
pub(crate) struct Decoder {
    events: HashMap<u16, Known>,
    id: Option<Field>,
    flags: Option<Field>,
    pid: Option<Field>,
}

#[derive(Debug)]
enum Known {
    /// The event's kind, and where its fields are, in the order of [`EventKind::fields`].
    Read(EventKind, Vec<Option<Field>>),
    Skipped(Box<str>),
}

#[derive(Debug)]
pub(in crate::read) enum Undecoded<'a> {
    /// The event has this name. Events of this kind are not read.
    Skipped(&'a str),
    Unreadable(Cause),
}

impl Decoder {
    pub(crate) fn add_format(&mut self, text: &str) {
        let Some(format) = Format::parse(text) else { return };
        self.id = format.field("common_type");
        self.flags = format.field("common_flags");
        self.pid = format.field("common_pid");
        let known = match EventKind::from_name(format.name.as_bytes()) {
            Some(kind) => {
                Known::Read(kind, kind.fields().iter().map(|name| format.field(name)).collect())
            }
            None => Known::Skipped(format.name.into()),
        };
        self.events.insert(format.id, known);
    }

    /// Decodes an event that occurred at `time` on `cpu`; `None` if it cannot be read. O(1).
    pub(crate) fn decode(
        &self,
        time: Ns,
        cpu: CpuId,
        event: &[u8],
        names: &mut Names,
    ) -> Option<Record> {
        self.record(time, cpu, event, names).ok()
    }

    pub(in crate::read) fn record(
        &self,
        time: Ns,
        cpu: CpuId,
        bytes: &[u8],
        names: &mut Names,
    ) -> Result<Record, Undecoded<'_>> {
        let read = |field: Option<Field>| field.and_then(|field| field.read(bytes));
        let known = read(self.id).and_then(|id| self.events.get(&(id as u16)));
        let (kind, fields) = match known {
            Some(Known::Read(kind, fields)) => (*kind, fields),
            Some(Known::Skipped(name)) => return Err(Undecoded::Skipped(name)),
            None => return Err(Undecoded::Unreadable(Cause::NotAnEvent)),
        };
        let fields = Fields::of_binary(kind, |at| read(fields.get(at).copied().flatten()));
        let event = fields.event(cpu, names).map_err(Undecoded::Unreadable)?;
        let context = read(self.flags).map_or(Context::NotRecorded, Context::from_flags);
        let pid = read(self.pid).unwrap_or(0) as u32;
        Ok(Record { time, event, line: 0, cpu, context, pid })
    }
}
