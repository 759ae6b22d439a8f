//! Finds the fields of an event in the kernel's description of it (a text).

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field {
    offset: u16,
    size: u8,
    is_signed: bool,
}

impl Field {
    /// Returns the field's number, sign-extended if it is signed; `None` if the event ends before
    /// it.
    pub(super) fn read(self, event: &[u8]) -> Option<u64> {
        let start = usize::from(self.offset);
        let bytes = event.get(start..start + usize::from(self.size))?;
        Some(match (bytes, self.is_signed) {
            (&[a], false) => a.into(),
            (&[a], true) => i64::from(a.cast_signed()).cast_unsigned(),
            (&[a, b], _) => u16::from_le_bytes([a, b]).into(),
            (&[a, b, c, d], false) => u32::from_le_bytes([a, b, c, d]).into(),
            (&[a, b, c, d], true) => i64::from(i32::from_le_bytes([a, b, c, d])).cast_unsigned(),
            _ => u64::from_le_bytes(bytes.try_into().ok()?),
        })
    }
}

#[derive(Debug)]
pub(super) struct Format<'a> {
    pub(super) name: &'a str,
    pub(super) id: u16,
    fields: Vec<(&'a str, Field)>,
}

impl<'a> Format<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Format<'a>> {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let fields = text.lines().filter_map(field).collect();
        Some(Format { name: value("name:")?, id: value("ID:")?.parse().ok()?, fields })
    }

    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }
}

/// Reads `field:unsigned long expires;  offset:24;  size:8;  signed:0;`
fn field(line: &str) -> Option<(&str, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let name = declaration.rsplit([' ', '*']).next()?;
    let (mut offset, mut size, mut is_signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            Some(("signed", number)) => is_signed = number == "1",
            _ => {}
        }
    }
    let size = size.filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
    Some((name, Field { offset: offset?, size, is_signed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_at_their_offsets() {
        let text = "name: hrtimer_start\nID: 460\nformat:\n\
            \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\n\
            \tfield:void * hrtimer;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:int left;\toffset:16;\tsize:4;\tsigned:1;\n\
            \tfield:char comm[16];\toffset:20;\tsize:16;\tsigned:0;\n\nprint fmt: \"\"\n";
        let format = Format::parse(text).unwrap();
        assert_eq!((format.name, format.id), ("hrtimer_start", 460));
        let event: Vec<u8> = (0..16).chain((-5_i32).to_le_bytes()).collect();
        let read = |name| format.field(name).and_then(|field| field.read(&event));
        assert_eq!(read("common_flags"), Some(2));
        assert_eq!(read("hrtimer"), Some(0x0f0e_0d0c_0b0a_0908));
        assert_eq!(read("left"), Some((-5_i64).cast_unsigned()));
        assert_eq!(read("comm[16]"), None, "no number");
        assert_eq!(format.field("left").unwrap().read(&event[..18]), None, "cut");
        assert!(Format::parse("name: x\n").is_none());
    }
}
