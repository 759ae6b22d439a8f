//! Derives machines with more or fewer CPUs from the description of an existing machine.

use crate::spec::Spec;

/// The greatest number of CPUs that a simulated machine is asked to have.
pub const CPUS_MAX: u16 = 4_096;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SizeError {
    #[error("{0} CPUs; ask for 1 to {CPUS_MAX}")]
    Range(u16),
    #[error(
        "a machine like {machine} has whole cores and sockets, so there is none with {asked} CPUs; \
         the next has {next} CPUs"
    )]
    Parts { machine: String, asked: u16, next: u16 },
}

/// Returns a machine with the same prices and exactly `asked` CPUs.
pub fn exactly(like: &Spec, asked: u16) -> Result<Spec, SizeError> {
    if !(1..=CPUS_MAX).contains(&asked) {
        return Err(SizeError::Range(asked));
    }
    let spec = sized(like, asked);
    match spec.costs().topology.cpus() {
        cpus if cpus == asked => Ok(spec),
        next => Err(SizeError::Parts { machine: like.name.clone(), asked, next }),
    }
}

/// Returns a machine with the same prices and `asked` CPUs, or the next higher number that is
/// possible: cores have all their threads and, if there are several sockets, sockets have all their
/// cores.
pub fn sized(like: &Spec, asked: u16) -> Spec {
    let count = |key| like.value(key).max(1.0) as u16;
    let threads = count("topology.threads_per_core");
    let per_socket = count("topology.cores_per_socket").saturating_mul(threads);
    let sockets = asked.div_ceil(per_socket).max(1);
    let mut spec = like.with("topology.sockets", f64::from(sockets));
    // If all sockets of the original are in one group, and so equally far apart, put all sockets of
    // the new machine into one group, too.
    if count("topology.sockets_per_group") == count("topology.sockets") {
        spec = spec.with("topology.sockets_per_group", f64::from(sockets));
    }
    if asked < per_socket {
        let cores = asked.div_ceil(threads).max(1);
        spec = spec.with("topology.cores_per_socket", f64::from(cores));
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;

    #[test]
    fn sizes_are_whole_cores_and_sockets() {
        let big = machines::named("ivybridge-ex-16s").unwrap().unwrap();
        let of = |asked| sized(&big, asked).costs().topology.cpus();
        assert_eq!([of(1), of(2), of(15), of(30), of(31), of(36)], [2, 2, 16, 30, 60, 60]);
        assert_eq!(sized(&big, 480), big);
        let odd = sized(&machines::named("itanium2-32p").unwrap().unwrap(), 7);
        assert_eq!(odd.costs().topology.cpus(), 8);
        assert_eq!(odd.value("topology.sockets_per_group"), 4.0);
    }
}
