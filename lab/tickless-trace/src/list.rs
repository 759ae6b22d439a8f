//! Lists of plain values that can be longer than the memory is large.
//!
//! A long list is in a temporary file without a name, in `TMPDIR` or `/var/tmp`. The file is mapped
//! into memory, so a list is a slice, and who goes through it in order gives the memory back behind
//! itself. Space on the disk is reserved before it is used: if there is none, or no file can be
//! made, the list is in memory after all.

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
use rustix::io::Result;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mremap, munmap};
use std::env;
use std::fmt::{self, Debug, Formatter};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::OwnedFd;
use std::{ptr, slice};

/// A list that is longer than this goes to a file, in bytes.
const SHORT_MAX: usize = 32 << 20;
/// By how much a file grows at once: by half, but no less and no more than this.
const STEP: [usize; 2] = [4 << 20, 64 << 20];
/// How much stays in memory behind who goes through a list.
const CHUNK: usize = 1 << 20;
/// Memory is given back in whole pages; the largest that Linux has by default.
const PAGE: usize = 1 << 16;

/// A list of which only the part in use needs to be in memory. Dereferences to a slice; going
/// through it with [`List::iter`] needs the least memory.
pub struct List<T: Copy + 'static> {
    /// All values, unless they are in a file.
    short: Vec<T>,
    /// A list that is longer than this is in memory only if it cannot be in a file.
    short_max: usize,
    long: Option<Mapped<T>>,
}

struct Mapped<T: 'static> {
    file: OwnedFd,
    bytes: usize,
    /// All of the file. Exactly the first `len` values are initialised.
    values: &'static mut [MaybeUninit<T>],
    len: usize,
}

impl<T: Copy> Mapped<T> {
    fn of(values: &[T]) -> Result<Mapped<T>> {
        let folder = env::var_os("TMPDIR").unwrap_or_else(|| "/var/tmp".into());
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = open(folder, flags, Mode::RUSR | Mode::WUSR)?;
        let mut mapped = Mapped { file, bytes: 0, values: &mut [], len: 0 };
        mapped.extend(values)?;
        Ok(mapped)
    }

    fn grow(&mut self) -> Result<()> {
        let step = (self.bytes / 2).clamp(STEP[0], STEP[1]) / PAGE * PAGE;
        fallocate(&self.file, FallocateFlags::empty(), self.bytes as u64, step as u64)?;
        let (old, bytes) = (self.values.as_mut_ptr(), self.bytes + step);
        // SAFETY: the old map is one of this size that nothing else refers to, and the new one is
        // no longer than the file, which nobody else can open.
        let new = unsafe {
            match self.bytes {
                0 => {
                    let access = ProtFlags::READ | ProtFlags::WRITE;
                    mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, &self.file, 0)?
                }
                old_bytes => mremap(old.cast(), old_bytes, bytes, MremapFlags::MAYMOVE)?,
            }
        };
        self.bytes = bytes;
        // SAFETY: a map is aligned to a page, and `drop` is the only one that removes it.
        self.values = unsafe { slice::from_raw_parts_mut(new.cast(), bytes / size_of::<T>()) };
        Ok(())
    }

    fn extend(&mut self, values: &[T]) -> Result<()> {
        let len = self.len + values.len();
        while self.values.len() < len {
            self.grow()?;
        }
        for (place, value) in self.values[self.len..len].iter_mut().zip(values) {
            place.write(*value);
        }
        self.len = len;
        Ok(())
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: the map is of this size, and nothing refers to it any longer. Without one, there
        // is nothing to remove, and the call fails.
        let _ = unsafe { munmap(self.values.as_mut_ptr().cast(), self.bytes) };
    }
}

impl<T: Copy> List<T> {
    const PER_CHUNK: usize = CHUNK / size_of::<T>();

    /// Creates one of `count` lists that together take as much memory as another one.
    pub(crate) fn one_of(count: usize) -> List<T> {
        let short_max = SHORT_MAX / count.max(1) / size_of::<T>();
        List { short: Vec::new(), short_max, long: None }
    }

    /// Adds a value to the end. Blocks on the disk, if the list is long.
    pub fn push(&mut self, value: T) {
        if let Some(mapped) = &mut self.long
            && !(mapped.len + 1).is_multiple_of(Self::PER_CHUNK)
            && let Some(place) = mapped.values.get_mut(mapped.len)
        {
            place.write(value);
            mapped.len += 1;
        } else {
            self.extend_from_slice(slice::from_ref(&value));
        }
    }

    /// Adds values to the end. Blocks on the disk, if the list is long.
    pub fn extend_from_slice(&mut self, values: &[T]) {
        let before = self.len();
        if self.long.is_none()
            && before <= self.short_max
            && before + values.len() > self.short_max
            && let Ok(mapped) = Mapped::of(&self.short)
        {
            (self.short, self.long) = (Vec::new(), Some(mapped));
        }
        let Some(mapped) = &mut self.long else { return self.short.extend_from_slice(values) };
        if mapped.extend(values).is_err() {
            self.short = [&self[..], values].concat();
            self.long = None;
        }
        let [old, new] = [before, before + values.len()].map(|len| len / Self::PER_CHUNK);
        if new > old {
            // Now and then also what was used again.
            let from = if new.is_multiple_of(16) { 0 } else { old * Self::PER_CHUNK };
            self.release(from..new * Self::PER_CHUNK);
        }
    }

    /// Returns all values in order. Gives the memory back of those that were passed.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        let mut last = 0..0;
        (0..self.len().div_ceil(Self::PER_CHUNK)).flat_map(move |chunk| {
            let begin = chunk * Self::PER_CHUNK;
            let chunk = begin..self.len().min(begin + Self::PER_CHUNK);
            self.release(std::mem::replace(&mut last, chunk.clone()));
            &self[chunk]
        })
    }

    /// Gives the memory back behind a walk in any direction, which has come to this place.
    pub(crate) fn pass(&self, place: usize) {
        if place.is_multiple_of(Self::PER_CHUNK) {
            let end = self.len().min(place + Self::PER_CHUNK);
            self.release(place.saturating_sub(Self::PER_CHUNK)..end);
        }
    }

    /// Gives the memory of some values back. They are read again from the file if they are used.
    pub(crate) fn release(&self, values: Range<usize>) {
        if let Some(mapped) = &self.long {
            let [from, to] = [values.start, values.end].map(|at| at * size_of::<T>() / PAGE * PAGE);
            let begin = mapped.values.as_ptr().wrapping_byte_add(from);
            // SAFETY: the range is in the map, of which this removes no values: it is shared with
            // the file, which has them all.
            let _ = unsafe { madvise(begin.cast_mut().cast(), to - from, Advice::LinuxDontNeed) };
        }
    }
}

impl<T: Copy> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.long {
            // SAFETY: that many values are initialised.
            Some(Mapped { values, len, .. }) => unsafe {
                slice::from_raw_parts(values.as_ptr().cast(), *len)
            },
            None => &self.short,
        }
    }
}

impl<T: Copy> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.long {
            // SAFETY: that many values are initialised.
            Some(Mapped { values, len, .. }) => unsafe {
                slice::from_raw_parts_mut(values.as_mut_ptr().cast(), *len)
            },
            None => &mut self.short,
        }
    }
}

impl<T: Copy> Default for List<T> {
    fn default() -> List<T> {
        List::one_of(1)
    }
}

impl<T: Copy> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> List<T> {
        let mut list = List::default();
        values.into_iter().for_each(|value| list.push(value));
        list
    }
}

impl<T: Copy + Debug> Debug for List<T> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self[..].fmt(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_a_file_is_like_a_vec() {
        let long = 40_000_u64;
        let mut list = List::one_of(1_000);
        list.extend_from_slice(&[0, 1, 2]);
        assert!(list.long.is_none());
        (3..2 * long).for_each(|value| list.push(value));
        list.extend_from_slice(&(2 * long..3 * long).collect::<Vec<_>>());
        list.release(0..list.len());
        assert!(list.long.is_some());
        let vec: Vec<u64> = (0..3 * long).collect();
        assert_eq!(list[..], vec);
        assert!(list.iter().eq(&vec) && list.iter().rev().eq(vec.iter().rev()));
        (0..list.len()).for_each(|place| list.pass(place));
        assert_eq!(list[..], vec);
        list[70_000..].reverse();
        list.release(0..list.len());
        assert_eq!((list[70_000], list[3 * long as usize - 1]), (3 * long - 1, 70_000));
    }

    #[test]
    fn a_list_without_room_on_the_disk_is_in_memory() {
        let mut list: List<u64> = List::one_of(1_000);
        let full = || open("/dev/full", OFlags::RDWR, Mode::empty()).unwrap();
        (0..1_000_000).for_each(|value| {
            list.push(value);
            if value == 100_000 {
                list.long.as_mut().unwrap().file = full();
            }
        });
        assert!(list.long.is_none() && list.iter().copied().eq(0..1_000_000));
    }
}
