//! The formats of events, as the kernel describes them: where in a record each field is.

use crate::read::event::EventKind;
use crate::read::fields::hash;

/// Where a field is in a record. All fields that are read are whole numbers.
#[derive(Clone, Debug)]
pub(in crate::read) struct Field {
    /// The hash of its name.
    pub(in crate::read) name: u64,
    offset: usize,
    size: usize,
}

/// The kind of an event, if it is one that is read, its name and its fields.
pub(in crate::read) type Format = (Option<EventKind>, Box<[u8]>, Vec<Field>);

#[derive(Debug, Default)]
pub(in crate::read) struct Formats {
    /// Where the events begin in a page, and how many bytes before it count them.
    pub(in crate::read) data: usize,
    /// The formats of events, by their numbers.
    events: Vec<Option<Format>>,
}

impl Field {
    /// Reads the field as a number; `None` if the record is too short, or the field no number.
    pub(in crate::read) fn of(&self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match *bytes {
            [one] => one.into(),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            _ => u64::from_le_bytes(bytes.try_into().ok()?),
        })
    }

    /// Returns where the field ends in a record.
    pub(in crate::read) fn end(&self) -> usize {
        self.offset.saturating_add(self.size)
    }

    /// Parses `field:unsigned long expires;\toffset:24;\tsize:8;\tsigned:0;`.
    fn parse(line: &str) -> Option<Field> {
        let line = line.trim().strip_prefix("field:")?;
        let mut parts = line.split(';').map(str::trim);
        let name = parts.next()?.rsplit([' ', '*']).next()?;
        let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
        let (offset, size) = (number("offset:")?, number("size:")?);
        Some(Field { name: hash(name.as_bytes()), offset, size })
    }
}

impl Formats {
    /// Reads the format of a page: the field `data` is where the events begin.
    pub(super) fn page(&mut self, text: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(text).ok()?;
        let mut fields = text.lines().filter_map(|line| Field::parse(line.trim()));
        self.data = fields.find(|field| field.name == hash(b"data"))?.offset;
        (16..=64).contains(&self.data).then_some(())
    }

    /// Reads the format of an event. `kind_of` finds its kind by its name.
    pub(super) fn event(
        &mut self,
        text: &[u8],
        kind_of: fn(&[u8]) -> Option<EventKind>,
    ) -> Option<()> {
        let text = String::from_utf8_lossy(text);
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let name = value("name: ")?.trim().as_bytes();
        let id: u16 = value("ID: ")?.trim().parse().ok()?;
        let fields = text.lines().filter_map(Field::parse).collect();
        self.events.resize(self.events.len().max(usize::from(id) + 1), None);
        self.events[usize::from(id)] = Some((kind_of(name), name.into(), fields));
        Some(())
    }

    /// Returns the format of the events with a number.
    pub(in crate::read) fn of(&self, id: u16) -> Option<&Format> {
        self.events.get(usize::from(id))?.as_ref()
    }
}
