//! Machines of the same kind with more or fewer CPUs.

use crate::spec::Spec;

/// A machine of another size.
#[derive(Clone, PartialEq, Debug)]
pub struct Sized {
    /// The requested number of CPUs.
    pub asked: u16,
    /// The actual number of CPUs: whole cores, and whole sockets if there are several.
    pub cpus: u16,
    /// The machine.
    pub spec: Spec,
}

/// Returns a machine like this one with `asked` CPUs, or the next possible number. Only a single
/// socket may have fewer cores; larger machines have whole sockets.
pub fn sized(like: &Spec, asked: u16) -> Sized {
    let count = |key| like.value(key).max(1.0) as u16;
    let threads = count("topology.threads_per_core");
    let per_socket = count("topology.cores_per_socket").saturating_mul(threads);
    let sockets = asked.div_ceil(per_socket).max(1);
    let mut spec = like.with("topology.sockets", f64::from(sockets));
    // Keep all sockets equally far apart if they are.
    if count("topology.sockets_per_group") == count("topology.sockets") {
        spec = spec.with("topology.sockets_per_group", f64::from(sockets));
    }
    if asked < per_socket {
        let cores = asked.div_ceil(threads).max(1);
        spec = spec.with("topology.cores_per_socket", f64::from(cores));
    }
    Sized { asked, cpus: spec.costs().topology.cpus(), spec }
}

/// Returns machines of these sizes, in this order, each size once.
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

    /// Goal: the reported size is the number of the machine's CPUs.
    #[test]
    fn reported_sizes_are_those_of_the_machines() {
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
