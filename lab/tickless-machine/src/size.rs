//! Derives machines with more or fewer CPUs from the description of an existing machine.

use crate::spec::Spec;

#[derive(Clone, PartialEq, Debug)]
pub struct Sized {
    /// The actual number of CPUs. It can be higher than requested, because cores have all their
    /// threads and, if there are several sockets, sockets have all their cores.
    pub cpus: u16,
    pub spec: Spec,
}

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
    match sized(like, asked) {
        Sized { cpus, spec } if cpus == asked => Ok(spec),
        Sized { cpus: next, .. } => {
            Err(SizeError::Parts { machine: like.name.clone(), asked, next })
        }
    }
}

/// Returns a machine with the same prices and `asked` CPUs, or the next higher number that is
/// possible. Only a machine with a single socket can have fewer cores for each socket.
pub fn sized(like: &Spec, asked: u16) -> Sized {
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
    Sized { cpus: spec.costs().topology.cpus(), spec }
}

/// Returns machines with these numbers of CPUs, in this order. Leaves a machine out if an earlier
/// one has the same actual number.
pub fn sizes(like: &Spec, asked: &[u16]) -> Vec<Sized> {
    let mut sizes: Vec<Sized> = Vec::new();
    for one in asked.iter().map(|&asked| sized(like, asked)) {
        if sizes.iter().all(|other| other.cpus != one.cpus) {
            sizes.push(one);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;

    /// Goal: `Sized::cpus` is the derived machine's number of CPUs, in whole cores and sockets.
    #[test]
    fn reported_sizes_are_those_of_the_machines() {
        let big = machines::named("ivybridge-ex-16s").unwrap().unwrap();
        let of = |asked| sized(&big, asked).cpus;
        assert_eq!([of(1), of(2), of(15), of(30), of(31), of(36)], [2, 2, 16, 30, 60, 60]);
        assert_eq!((of(480), sized(&big, 480).spec), (480, big.clone()));
        let nodes = machines::named("itanium2-32p").unwrap().unwrap();
        let odd = sized(&nodes, 7);
        assert_eq!(odd.cpus, 8);
        assert_eq!(odd.spec.value("topology.sockets_per_group"), 4.0);
        assert_eq!(sizes(&big, &[36, 60, 30]).len(), 2);
    }
}
