//! What comes from outside of the traced processes: data of a terminal or pipe that the program has
//! inherited, of another machine, of a server that is not in the tree, and of pseudo-terminals.
//! Meanwhile, time is real.

use super::state::Engine;
use super::ways::Connection;
use crate::look::{EPOLLS, awaits_outer};
use crate::options::{Note, Outside};
use crate::sys::descriptors;
use crate::sys::memory;
use crate::sys::ptrace::Registers;
use crate::thread::{InCall, State, arguments};
use libc::pid_t;
use std::fs;
use std::net::IpAddr;

impl Engine<'_> {
    /// For a thread that is stopped before a call which gives a socket this address: records what
    /// leads to another machine, or to another process of this one. Makes a connection of this
    /// machine send its data at once (TCP_NODELAY).
    pub(crate) fn connects(&mut self, tid: pid_t, registers: &Registers, address: u64) {
        let [fd, ..] = arguments(registers);
        let mut bytes = [0; 28];
        if !memory::read(tid, address, &mut bytes) && !memory::read(tid, address, &mut bytes[..16])
        {
            return;
        }
        let process = self.tree.process_of(tid);
        let Some(socket) = descriptors::socket(process, fd) else { return };
        let connects = registers.orig_rax.cast_signed() == libc::SYS_connect;
        if is_beyond(&bytes) {
            self.ways.beyond.insert((process, fd, socket));
        } else if connects || self.ways.senders.insert(socket) {
            descriptors::send_at_once(process, fd);
            // A client that makes many connections has closed most of them.
            if self.ways.new.len() > 1_000 {
                self.ways.new.retain(|(of, _)| is_open(of));
            }
            let [family, _, high, low, ..] = bytes;
            let port = u16::from_be_bytes([high, low]);
            let port = (i32::from(family) != libc::AF_UNIX).then_some(port);
            self.ways.new.push(((process, fd, socket), port));
        }
    }

    /// For a thread that is stopped before listen(2).
    pub(crate) fn listens(&mut self, tid: pid_t, fd: u64) {
        let process = self.tree.process_of(tid);
        // The accepted sockets inherit it.
        descriptors::send_at_once(process, fd);
        self.ways.listeners.insert(process);
    }

    /// Returns whether what the program writes has yet to be read outside of the tree.
    pub(crate) fn is_output_full(&self) -> bool {
        let outputs = &self.ways.outputs;
        !outputs.is_empty() && descriptors::polled(outputs, libc::POLLOUT) < outputs.len()
    }

    /// Returns whether the clock must not jump, because a socket is connected to another machine,
    /// or has just been found to lead out of the tree, or a process has a pseudo-terminal. Must be
    /// called when all threads are asleep.
    pub(crate) fn is_held_by_outside(&mut self) -> bool {
        if self.options.outside == Outside::Ignore {
            return false;
        }
        self.ways.beyond.retain(is_open);
        let by_network = self.ways.beyond.iter().next().map(|(process, ..)| *process);
        let holder = by_network.map(|process| (process, Some("a connection to another machine")));
        let holder = holder.or_else(|| {
            let mut processes = self.tree.processes.keys().filter(|_| self.has_terminals);
            let process = processes.find(|process| descriptors::has_terminal(**process))?;
            // A thread of the kernel passes on what is written, and the tracer does not see it.
            Some((*process, Some("data of a pseudo-terminal")))
        });
        let holder = holder.or_else(|| {
            // Another thread has perhaps added a file to what one waits for that sleeps on.
            let has_inputs = self.ways.outer.keys().any(|(_, event)| *event == libc::POLLIN);
            let mut threads = self.tree.threads.values_mut().filter(|_| has_inputs);
            threads.find_map(|thread| match (thread.state, thread.call_asleep) {
                (State::Free(_), InCall::Waits(call)) if EPOLLS.contains(&call.0) => {
                    Some((thread.tid, awaits_outer(&self.ways.outer, thread, &call)?))
                }
                _ => None,
            })
        });
        if let Some((tid, what)) = holder {
            self.note_outside(tid, what);
            return true;
        }
        let before = self.ways.outer.len();
        for (connection, port) in std::mem::take(&mut self.ways.new) {
            if is_open(&connection) && self.leads_out(connection, port) {
                for event in [libc::POLLIN, libc::POLLOUT] {
                    let key = (connection.2, event);
                    self.ways.outer.insert(key, Some("a program outside of the tree"));
                }
            }
        }
        let has_new = self.ways.outer.len() > before;
        if has_new {
            // Threads that wait for these do not count as asleep.
            self.tree.threads.values_mut().for_each(|thread| thread.activity_asleep = None);
        }
        has_new
    }

    pub(crate) fn note_outside(&mut self, tid: pid_t, what: Option<&'static str>) {
        if let Some(what) = what {
            self.note_once(Note::Outside(self.tree.name_of(tid), what));
        }
    }

    /// Returns whether the other end of a socket belongs to no process of the tree.
    fn leads_out(&self, (process, fd, socket): Connection, port: Option<u16>) -> bool {
        let Some((kind, peer)) = descriptors::peer(process, fd) else { return false };
        let Some(port) = port else {
            let is_of_tree =
                |peer| self.ways.listeners.contains(peer) || self.tree.processes.contains_key(peer);
            return peer > 0 && !is_of_tree(&peer);
        };
        let tables = if kind == libc::SOCK_STREAM { ["tcp", "tcp6"] } else { ["udp", "udp6"] };
        let mut servers = Vec::new();
        for table in tables {
            let text = fs::read_to_string(format!("/proc/{process}/net/{table}"));
            servers.extend(text.unwrap_or_default().lines().filter_map(|row| {
                let words: Vec<&str> = row.split_whitespace().collect();
                let local = u16::from_str_radix(words.get(1)?.rsplit(':').next()?, 16).ok()?;
                let (server, own) = (*words.get(9)?, socket.2.to_string());
                let is_server = local == port && server != "0" && server != own;
                is_server.then(|| format!("socket:[{server}]"))
            }));
        }
        let has = |process: &pid_t| {
            let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
            let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
            links.any(|link| servers.iter().any(|server| link.as_os_str() == server.as_str()))
        };
        !servers.is_empty() && !self.tree.processes.keys().any(has)
    }
}

fn is_open((process, fd, socket): &Connection) -> bool {
    descriptors::socket(*process, *fd) == Some(*socket)
}

/// Returns whether an address of a socket is that of another machine, or of another device.
fn is_beyond(address: &[u8; 28]) -> bool {
    let [low, high, _, _, a, b, c, d, v6 @ ..] = *address;
    let v6: [u8; 16] = std::array::from_fn(|at| v6[at]);
    let address = match i32::from(u16::from_ne_bytes([low, high])) {
        libc::AF_INET => IpAddr::from([a, b, c, d]),
        libc::AF_INET6 => IpAddr::from(v6).to_canonical(),
        // What the kernel itself answers at once.
        libc::AF_UNSPEC | libc::AF_UNIX | libc::AF_NETLINK | libc::AF_ALG => return false,
        _ => return true,
    };
    !address.is_loopback() && !address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_beyond_loopback() {
        let is_beyond_as = |address: &str| {
            let (family, at, octets) = match address.parse().unwrap() {
                IpAddr::V4(address) => (libc::AF_INET, 4, address.octets().to_vec()),
                IpAddr::V6(address) => (libc::AF_INET6, 8, address.octets().to_vec()),
            };
            let mut bytes = [0; 28];
            bytes[0] = family as u8;
            bytes[at..at + octets.len()].copy_from_slice(&octets);
            is_beyond(&bytes)
        };
        assert!(["10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"].into_iter().all(is_beyond_as));
        let local = ["127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.53"];
        assert!(!local.into_iter().any(is_beyond_as));
        let family = |family: u8| [&[family, 0][..], &[0; 26]].concat().try_into().unwrap();
        assert!(!is_beyond(&family(libc::AF_UNIX as u8)) && is_beyond(&family(40)));
    }
}
