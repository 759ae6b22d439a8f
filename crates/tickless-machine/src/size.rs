//! Machines of the same kind with more or fewer CPUs.

use crate::spec::Spec;

/// A machine of another size.
#[derive(Clone, PartialEq, Debug)]
pub struct Sized {
    /// How many CPUs it was to have.
    pub asked: u16,
    /// How many it has: whole cores, and whole sockets where it is more than one.
    pub cpus: u16,
    /// The machine.
    pub spec: Spec,
}

/// A machine like this one that has so many CPUs, or the next number that it can have. No more
/// than one socket is made of fewer cores; more are made of whole sockets.
pub fn sized(like: &Spec, asked: u16) -> Sized {
    let count = |key| like.value(key).max(1.0) as u16;
    let threads = count("topology.threads_per_core");
    let per_socket = count("topology.cores_per_socket").saturating_mul(threads);
    let sockets = asked.div_ceil(per_socket).max(1);
    let mut spec = like.with("topology.sockets", f64::from(sockets));
    // Where all sockets are equally far apart, they stay so.
    if count("topology.sockets_per_group") == count("topology.sockets") {
        spec = spec.with("topology.sockets_per_group", f64::from(sockets));
    }
    if asked < per_socket {
        let cores = asked.div_ceil(threads).max(1);
        spec = spec.with("topology.cores_per_socket", f64::from(cores));
    }
    Sized { asked, cpus: spec.costs().topology.cpus(), spec }
}

/// Machines of these sizes, in this order, each size once.
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

    /// Goal: a machine never passes for one of another size.
    #[test]
    fn sizes_are_what_machines_have() {
        let big = machines::named("ivybridge-ex-16s").unwrap().unwrap();
        let of = |asked| sized(&big, asked).cpus;
        assert_eq!([of(1), of(2), of(15), of(30), of(31), of(36)], [2, 2, 16, 30, 60, 60]);
        assert_eq!((of(480), sized(&big, 480).spec), (480, big.clone()));
        let nodes = machines::named("itanium2-32p").unwrap().unwrap();
        let odd = sized(&nodes, 7);
        assert_eq!((odd.asked, odd.cpus), (7, 8));
        assert_eq!(odd.spec.value("topology.sockets_per_group"), 4.0);
        assert_eq!(sizes(&big, &[36, 60, 30]).len(), 2);
    }
}
