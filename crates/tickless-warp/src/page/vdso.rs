//! Where the functions of the vDSO are. The kernel maps the same image into all programs of 64 bits
//! (since Linux 2.6.23), so this process reads its own.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;

/// The image of the vDSO, as the kernel maps it.
pub(crate) struct Vdso {
    image: Vec<u8>,
}

/// `SHT_DYNSYM`.
const DYNAMIC_SYMBOLS: u32 = 11;

impl Vdso {
    /// Reads this process's image. `None` if the kernel maps none (`vdso=0`).
    pub(crate) fn of_this_kernel() -> Option<Vdso> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
        let (begin, end) = line.split_once(' ')?.0.split_once('-')?;
        let [begin, end] = [begin, end].map(|address| u64::from_str_radix(address, 16).ok());
        let (begin, end) = (begin?, end?);
        let mut image = vec![0; usize::try_from(end - begin).ok()?];
        File::open("/proc/self/mem").ok()?.read_exact_at(&mut image, begin).ok()?;
        Some(Vdso { image })
    }

    /// Returns the offset of a function, if it has room for `room` bytes.
    pub(crate) fn function(&self, name: &str, room: u64) -> Option<u64> {
        let (table, strings) = self.tables()?;
        let symbols = self.image.get(table)?.chunks_exact(24);
        for symbol in symbols {
            let name_at = strings + word(symbol, 0, 4)? as usize;
            let found = self.image.get(name_at..)?.split(|byte| *byte == 0).next()?;
            if found == name.as_bytes() && word(symbol, 16, 8)? >= room {
                return word(symbol, 8, 8);
            }
        }
        None
    }

    /// Returns the range of the dynamic symbols, and the begin of their names.
    fn tables(&self) -> Option<(std::ops::Range<usize>, usize)> {
        let sections = word(&self.image, 0x28, 8)? as usize;
        let (size, count) = (word(&self.image, 0x3a, 2)? as usize, word(&self.image, 0x3c, 2)?);
        let section = |index: usize| self.image.get(sections + index * size..);
        let place = |section: &[u8]| Some((word(section, 24, 8)?, word(section, 32, 8)?));
        for index in 0..count as usize {
            let symbols = section(index)?;
            if word(symbols, 4, 4)? as u32 == DYNAMIC_SYMBOLS {
                let (at, length) = place(symbols)?;
                let (strings, _) = place(section(word(symbols, 40, 4)? as usize)?)?;
                return Some((at as usize..(at + length) as usize, strings as usize));
            }
        }
        None
    }
}

/// Reads a number of up to eight bytes.
fn word(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// Returns the address at which a process has the vDSO, from its auxiliary vector.
pub(crate) fn address(pid: i32) -> Option<u64> {
    const AT_SYSINFO_EHDR: u64 = 33;
    let mut vector = Vec::new();
    File::open(format!("/proc/{pid}/auxv")).ok()?.read_to_end(&mut vector).ok()?;
    let entry = vector.chunks_exact(16).find(|entry| word(entry, 0, 8) == Some(AT_SYSINFO_EHDR))?;
    word(entry, 8, 8).filter(|address| *address != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_this_kernel_are_found() {
        let Some(vdso) = Vdso::of_this_kernel() else { return };
        let at = vdso.function("__vdso_clock_gettime", 12).unwrap();
        assert!(at > 0 && at < vdso.image.len() as u64);
        assert_eq!(vdso.function("__vdso_clock_gettime", 1 << 20), None, "no such room");
        assert_eq!(vdso.function("__vdso_nothing", 0), None);
        assert!(address(std::process::id().cast_signed()).is_some());
        for length in [0, 10, 70, 1_000] {
            let cut = Vdso { image: vdso.image[..length].to_vec() };
            assert_eq!(cut.function("__vdso_time", 1), None);
        }
    }
}
