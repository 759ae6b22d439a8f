//! Sockets, cores and SMT threads, and the distances between them.
//!
//! CPUs are numbered as Linux numbers them on most machines: first the first thread of every core,
//! socket by socket, then the second thread of every core, and so on.

use tickless_core::time::CpuId;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Distance {
    Core,
    Socket,
    /// Different sockets of one group, which are one hop apart.
    Near,
    Far,
}

/// The numbers of sockets, cores and threads of a machine. All are at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Topology {
    pub sockets: u16,
    pub cores_per_socket: u16,
    pub threads_per_core: u16,
    /// The number of sockets in a group. Sockets of one group are one hop apart.
    pub sockets_per_group: u16,
}

impl Topology {
    pub fn cpus(&self) -> u16 {
        self.cores() * self.threads_per_core
    }

    pub fn cores(&self) -> u16 {
        self.sockets * self.cores_per_socket
    }

    #[inline]
    pub fn core(&self, cpu: CpuId) -> u16 {
        cpu.0 % self.cores()
    }

    #[inline]
    pub fn socket_of_core(&self, core: u16) -> u16 {
        core / self.cores_per_socket
    }

    #[inline]
    pub fn socket(&self, cpu: CpuId) -> u16 {
        self.socket_of_core(self.core(cpu))
    }

    pub fn threads(&self, core: u16) -> impl Iterator<Item = CpuId> + use<> {
        let (cores, threads) = (self.cores(), self.threads_per_core);
        (0..threads).map(move |thread| CpuId(core + thread * cores))
    }

    #[inline]
    pub fn between_sockets(&self, one: u16, other: u16) -> Distance {
        if one == other {
            Distance::Socket
        } else if one / self.sockets_per_group == other / self.sockets_per_group {
            Distance::Near
        } else {
            Distance::Far
        }
    }

    pub fn between(&self, one: CpuId, other: CpuId) -> Distance {
        if self.core(one) == self.core(other) {
            Distance::Core
        } else {
            self.between_sockets(self.socket(one), self.socket(other))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: CPUs are numbered, and distances between them computed, as documented. The machine has
    /// 16 sockets of 15 cores with 2 threads, in groups of 4 sockets.
    #[test]
    fn cpus_are_numbered_by_thread_and_grouped_by_distance() {
        let topology = Topology {
            sockets: 16,
            cores_per_socket: 15,
            threads_per_core: 2,
            sockets_per_group: 4,
        };
        assert_eq!((topology.cpus(), topology.cores()), (480, 240));
        assert_eq!(topology.threads(17).collect::<Vec<_>>(), [CpuId(17), CpuId(257)]);
        let apart = |a, b| topology.between(CpuId(a), CpuId(b));
        assert_eq!(apart(17, 257), Distance::Core);
        assert_eq!(apart(15, 29), Distance::Socket);
        assert_eq!(apart(0, 59), Distance::Near);
        assert_eq!(apart(59, 60), Distance::Far);
    }
}
