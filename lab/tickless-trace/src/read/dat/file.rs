//! The file of a recording: what is read of a plain one is read where it is, and any other is in
//! a list.

use crate::list::List;
use std::fs::File;
use std::os::unix::fs::FileExt;

pub(in crate::read) enum Source<'a> {
    /// A file, and its size.
    Plain(&'a File, u64),
    List(&'a List<u8>),
}

impl<'a> Source<'a> {
    /// Returns a file as a source, if it begins with these bytes and can be read at any place.
    pub(in crate::read) fn of(file: &'a File, begin: &[u8]) -> Option<Source<'a>> {
        let size = file.metadata().ok().filter(|about| about.is_file())?.len();
        let source = Source::Plain(file, size);
        (source.bytes(0, begin.len() as u64)? == begin).then_some(source)
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Source::Plain(_, size) => *size,
            Source::List(list) => list.len() as u64,
        }
    }

    /// Returns these bytes; `None` if not all of them can be read.
    pub(super) fn bytes(&self, at: u64, size: u64) -> Option<Vec<u8>> {
        if at.checked_add(size)? > self.len() {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        self.read(at as usize, &mut bytes).then_some(bytes)
    }

    /// Fills `bytes` with those from `at` on. Returns whether that is possible. Gives the memory
    /// back that a list has for them.
    pub(super) fn read(&self, at: usize, bytes: &mut [u8]) -> bool {
        match self {
            Source::Plain(file, _) => file.read_exact_at(bytes, at as u64).is_ok(),
            Source::List(list) => {
                let from = list.get(at..at + bytes.len()).map(|from| bytes.copy_from_slice(from));
                list.release(at..at + bytes.len());
                from.is_some()
            }
        }
    }
}
