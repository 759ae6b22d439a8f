//! Where the functions of the vDSO are. The kernel maps the same image into all programs of 64 bits
//! (since Linux 2.6.23), so this process reads its own.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Reads this process's image. `None` if the kernel maps none (`vdso=0`).
pub(super) fn image() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (begin, end) = line.split_once(' ')?.0.split_once('-')?;
    let [begin, end] = [begin, end].map(|address| u64::from_str_radix(address, 16).ok());
    let (begin, end) = (begin?, end?);
    let mut image = vec![0; usize::try_from(end - begin).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut image, begin).ok()?;
    Some(image)
}

/// Returns the address at which a process has the vDSO, from its auxiliary vector.
pub(crate) fn address(pid: i32) -> Option<u64> {
    let vector = fs::read(format!("/proc/{pid}/auxv")).ok()?;
    let words = vector.chunks_exact(8).filter_map(|word| word.try_into().ok());
    let words: Vec<u64> = words.map(u64::from_ne_bytes).collect();
    let entry = words.chunks_exact(2).find(|entry| entry[0] == libc::AT_SYSINFO_EHDR)?;
    Some(entry[1]).filter(|address| *address != 0)
}
