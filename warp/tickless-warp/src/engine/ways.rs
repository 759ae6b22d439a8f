//! What leads out of the tree: what the program inherits, and its connections.

use crate::look::Outer;
use crate::sys::descriptors::{self, FileId};
use libc::pid_t;
use std::collections::HashSet;

/// A socket: its process and descriptor.
pub(crate) type Connection = (pid_t, u64, FileId);

/// What leads out of the tree.
#[derive(Default)]
pub(crate) struct Ways {
    pub(crate) outer: Outer,
    /// This process's descriptors that the program has inherited as its output.
    pub(crate) outputs: Vec<libc::c_int>,
    /// Connections of this machine of which it is not known whether they lead out, each with the
    /// port at the other end, or `None` for a Unix socket.
    pub(crate) new: Vec<(Connection, Option<u16>)>,
    /// Sockets that are connected to other machines.
    pub(crate) beyond: HashSet<Connection>,
    /// Sockets that have sent datagrams, to another machine or to a port whose owner is known.
    pub(crate) senders: HashSet<FileId>,
    /// The processes of the tree that have listened for connections.
    pub(crate) listeners: HashSet<pid_t>,
}

impl Ways {
    /// Returns what a program inherits from this process.
    pub(crate) fn inherited() -> Ways {
        let (inputs, outputs) = descriptors::leading_out();
        let name = |fd| if fd == 0 { "its standard input" } else { "a file that it inherited" };
        let own = |fd| descriptors::status_of(std::process::id() as pid_t, fd as u64);
        let of = |fd, event, name| Some(((descriptors::id(&own(fd)?), event), name));
        let reads = inputs.iter().rev().filter_map(|fd| of(*fd, libc::POLLIN, Some(name(*fd))));
        let writes = outputs.iter().filter_map(|fd| of(*fd, libc::POLLOUT, None));
        Ways { outer: reads.chain(writes).collect(), outputs, ..Ways::default() }
    }
}
