//! Maps the CPU that the caller runs on to its base, which holds the timers of that CPU.
//!
//! The kernel writes the number of the CPU into each thread's restartable-sequence area (rseq;
//! glibc registers it since 2.35), so reading it costs one load. `getcpu` costs ten times that.

use crate::platform::chance::Chance;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::Arc;
use tickless_core::time::CpuId;

/// The CPUs on which the process is allowed to run, and their bases, numbered without gaps.
#[derive(Debug, Clone)]
pub struct CpuMap {
    current: CurrentCpu,
    base_of: Box<[u16]>,
    /// The CPUs in ascending order: base `n` belongs to `cpus[n]`.
    cpus: Vec<u32>,
    bases: u16,
    /// If present, `here` draws a random base from it, instead of returning the current CPU's base.
    chance: Option<Arc<Chance>>,
}

impl CpuMap {
    /// Creates a map with one base for each CPU on which at least one thread of the process can
    /// run. The CPUs of the calling thread are not enough: that thread is perhaps pinned.
    pub fn of_this_process() -> CpuMap {
        let sets: Vec<CpuSet> =
            threads().chain([None]).filter_map(|id| sched_getaffinity(id).ok()).collect();
        let allowed = |cpu: &usize| sets.iter().any(|set| set.is_set(*cpu));
        // Under Miri it takes most of a second to check each number, so check only 16.
        let most = if cfg!(miri) { 16 } else { CpuSet::MAX_CPU };
        let mut cpus: Vec<u32> = (0..most).filter(allowed).map(|cpu| cpu as u32).collect();
        if cpus.is_empty() {
            let count = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
            cpus = (0..count).collect();
        }
        CpuMap::new(cpus, None)
    }

    /// Lets the calling thread run on every CPU that has a base.
    pub fn roam(&self) {
        let mut set = CpuSet::new();
        self.cpus.iter().for_each(|cpu| set.set(*cpu as usize));
        // If the system refuses this, the thread is only slower.
        let _ = sched_setaffinity(None, &set);
    }

    /// Spreads the CPUs over this number of bases, at least one.
    pub fn with_bases(self, bases: u16) -> CpuMap {
        CpuMap::new(self.cpus, Some(bases.max(1)))
    }

    /// Distributes the allowed CPUs over the bases in turn. `None` makes one base for each CPU.
    fn new(cpus: Vec<u32>, bases: Option<u16>) -> CpuMap {
        let bases = bases.unwrap_or(u16::try_from(cpus.len()).unwrap_or(u16::MAX - 1));
        let highest = cpus.iter().copied().max().unwrap_or(0) as usize;
        let mut base_of: Box<[u16]> =
            (0..=highest).map(|cpu| (cpu % usize::from(bases)) as u16).collect();
        for (place, &cpu) in cpus.iter().enumerate() {
            base_of[cpu as usize] = (place % usize::from(bases)) as u16;
        }
        CpuMap { current: CurrentCpu::new(), base_of, cpus, bases, chance: None }
    }

    pub fn shuffled(self, chance: Arc<Chance>) -> CpuMap {
        // With an empty table no CPU has a base, so each `here` draws one in `base_without_cpu`.
        CpuMap { base_of: Box::default(), chance: Some(chance), ..self }
    }

    pub fn bases(&self) -> u16 {
        self.bases
    }

    /// Returns the CPU that a base belongs to. If several CPUs share the base, returns the first.
    pub fn cpu_of(&self, base: CpuId) -> Option<u32> {
        self.cpus.get(base.index()).copied()
    }

    #[inline]
    pub fn current(&self) -> CurrentCpu {
        self.current
    }

    /// Returns the base of the CPU that the caller runs on. A CPU that the process was not allowed
    /// to use when the map was created shares the base of another CPU.
    #[inline]
    pub fn here(&self) -> CpuId {
        let cpu = self.current.number();
        match self.base_of.get(cpu) {
            Some(&base) => CpuId(base),
            None => self.base_without_cpu(cpu),
        }
    }

    /// Does the same for a CPU with a base, if its number can be read without a call.
    #[inline(always)]
    pub fn try_here(&self) -> Option<CpuId> {
        self.base_of.get(current(self.current.rseq_offset)?).map(|&base| CpuId(base))
    }

    #[cold]
    fn base_without_cpu(&self, cpu: usize) -> CpuId {
        let place = self.chance.as_ref().map_or(cpu, |chance| chance.draw() as usize);
        CpuId((place % usize::from(self.bases)) as u16)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct CurrentCpu {
    /// The offset of each thread's rseq area from its thread pointer; 0 if there is none.
    rseq_offset: isize,
}

impl CurrentCpu {
    fn new() -> CurrentCpu {
        CurrentCpu { rseq_offset: rseq_offset().unwrap_or(0) }
    }

    /// Returns the CPU's number. The thread can move to another CPU at any moment.
    #[inline]
    pub fn number(self) -> usize {
        current(self.rseq_offset).unwrap_or_else(getcpu)
    }
}

/// Returns the current CPU from the rseq area; `None` if `rseq_offset` is 0 (no area).
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn current(rseq_offset: isize) -> Option<usize> {
    match rseq_offset {
        0 => None,
        offset => {
            let cpu: u32;
            // SAFETY: glibc puts every thread's rseq area at this offset from the thread pointer;
            // its `cpu_id` field is the second 32-bit word.
            unsafe {
                core::arch::asm!(
                    "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
                    cpu = out(reg) cpu,
                    offset = in(reg) offset,
                    options(nostack, readonly, preserves_flags),
                );
            }
            // The field is negative if glibc could not register this thread's rseq area.
            (cpu < 1 << 30).then_some(cpu as usize)
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn current(_: isize) -> Option<usize> {
    None
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn rseq_offset() -> Option<isize> {
    None
}

fn getcpu() -> usize {
    if cfg!(miri) { 0 } else { rustix::thread::sched_getcpu() }
}

/// Returns the offset of glibc's rseq areas from the thread pointer, if glibc has them.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn rseq_offset() -> Option<isize> {
    // SAFETY: `dlsym` looks up a name. Where the two symbols exist they are constants of these
    // types, and valid for the life of the process.
    unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr());
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr());
        if size.is_null() || offset.is_null() || *size.cast::<u32>() == 0 {
            return None;
        }
        Some(*offset.cast::<isize>())
    }
}

/// Returns the threads of this process; none if `/proc` cannot be read.
fn threads() -> impl Iterator<Item = Option<Pid>> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let id = |task: std::fs::DirEntry| task.file_name().to_str()?.parse().ok();
    tasks.filter_map(id).map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rseq_and_getcpu_agree() {
        // The thread can move to another CPU between the two calls, but not every time.
        assert!((0..100).any(|_| CurrentCpu::new().number() == getcpu()));
    }

    #[test]
    fn every_cpu_has_a_base() {
        let map = CpuMap::new(vec![4, 5, 9], None);
        assert_eq!((map.bases(), map.cpu_of(CpuId(2))), (3, Some(9)));
        assert_eq!(map.base_of[9], 2);
        assert!(map.base_of.iter().all(|&base| base < 3));
        assert_eq!(CpuMap::of_this_process().with_bases(1).here(), CpuId(0));
    }

    #[test]
    fn a_pinned_thread_sees_all_cpus() {
        let all = CpuMap::of_this_process();
        std::thread::scope(|s| {
            let pinned = s.spawn(|| {
                let mut one = CpuSet::new();
                one.set(all.cpus[0] as usize);
                sched_setaffinity(None, &one).unwrap();
                let map = CpuMap::of_this_process();
                map.roam();
                (map.bases(), sched_getaffinity(None).unwrap().count() as usize)
            });
            assert_eq!(pinned.join().unwrap(), (all.bases(), all.cpus.len()));
        });
    }
}
