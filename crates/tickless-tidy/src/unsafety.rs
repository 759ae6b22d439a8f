//! Where unsafe code and atomics may stand.
//!
//! Both have few addresses so that a reviewer knows where to look. The lists here are the
//! only way to get a new address; there is no inline exception.

use crate::Finding;
use crate::mask::{find_words, is_word};
use crate::source::SourceFile;

/// A place in the tree, and why it may do what others may not. A path that ends in `/` is
/// everything below that folder.
pub type Address = (&'static str, &'static str);

/// The only places where the word `unsafe` may stand, tests and benches included.
pub const UNSAFE_ADDRESSES: &[Address] = &[
    ("crates/tickless-core/src/owned.rs", "the owner of a timer frees it"),
    ("crates/tickless-core/src/platform.rs", "the seam says what unsafe code trusts"),
    ("crates/tickless-core/tests/all/world/mod.rs", "a world vouches for its words and locks"),
    ("crates/tickless-models/tests/models/world.rs", "a world vouches for its words and locks"),
    ("crates/tickless-trace/src/replay/world.rs", "a world vouches for its words and locks"),
    ("crates/tickless-machine/src/platform.rs", "a world vouches for its words and locks"),
    ("crates/tickless-machine/src/validate/library.rs", "a world vouches for its words and locks"),
    ("crates/tickless-core/src/link/", "intrusive nodes are reached through pointers"),
    (
        "crates/tickless-models/tests/models/place.rs",
        "models free timers, to see who still uses them",
    ),
    ("crates/tickless-core/tests/all/queue.rs", "tests own the nodes that they hand in"),
    ("crates/tickless-core/tests/all/wheel/nodes.rs", "tests own the nodes that they hand in"),
    ("crates/tickless-core/examples/wasm/main.rs", "what a page calls is exported by name"),
    ("crates/tickless-core/benches/queue.rs", "benches own the nodes that they hand in"),
    ("crates/tickless/src/platform/", "system calls and counter instructions"),
    ("crates/tickless/src/timer/", "the owner of a timer frees it"),
    ("crates/tickless/src/slots.rs", "timers in memory that the caller vouches for"),
    ("crates/tickless/tests/fork.rs", "fork(2) can only be called so"),
    ("crates/tickless/tests/stress/soak.rs", "fork(2) can only be called so"),
    ("crates/tickless-fuzz/src/c.rs", "calls C's entries, as C would"),
    ("crates/tickless/tests/all/refused.rs", "seccomp(2) can only be called so"),
    ("crates/tickless-lab/src/measure/stopwatch.rs", "the counter instruction by itself"),
    ("crates/tickless-capi/", "pointers come from and go to C"),
    ("crates/tickless-machine/src/fiber.rs", "a fiber finds its way out by a pointer"),
    ("bench/src/memory.rs", "an allocator that counts"),
    ("bench/src/cases/clocks.rs", "the counter instruction by itself"),
];

/// The only places in the sources of the `no_std` crates that may name an atomic type.
pub const ATOMIC_ADDRESSES: &[Address] =
    &[("crates/tickless-core/src/word.rs", "the seam defines what a Word is")];

/// The crates that know no operating system.
const NO_STD: &[&str] = &["tickless-core"];

const ATOMICS: &[&str] =
    &["sync::atomic", "atomic::", "AtomicU", "AtomicI", "AtomicBool", "AtomicPtr"];

/// `unsafe` stands only at [`UNSAFE_ADDRESSES`].
pub fn unsafe_addresses(file: &SourceFile) -> Vec<Finding> {
    if is_at(&file.path, UNSAFE_ADDRESSES) {
        return Vec::new();
    }
    let breaches = find_words(&file.code, "unsafe").into_iter().map(|at| {
        let instead = "call what link, platform, timer or capi offer, or give the file an address \
                       with a reason in UNSAFE_ADDRESSES";
        file.finding(file.line_of(at), "unsafe-address", "`unsafe` outside its addresses", instead)
    });
    breaches.collect()
}

/// Every address has something to be an address for.
pub fn stale_addresses(files: &[SourceFile]) -> Vec<Finding> {
    let is_needed = |place: &&Address| {
        let mut there = files.iter().filter(|file| is_at(&file.path, &[**place]));
        there.any(|file| !find_words(&file.code, "unsafe").is_empty())
    };
    let stale = UNSAFE_ADDRESSES.iter().filter(|place| !is_needed(place));
    let finding = |(path, _): &Address| Finding {
        path: path.to_string(),
        line: 1,
        rule: "unsafe-address",
        what: "an address without unsafe code".to_string(),
        instead: "drop it from UNSAFE_ADDRESSES".to_string(),
    };
    stale.map(finding).collect()
}

/// Atomics stand only at [`ATOMIC_ADDRESSES`] of the `no_std` crates; other crates are free.
pub fn atomics(file: &SourceFile) -> Vec<Finding> {
    let is_watched = file.library().is_some_and(|(name, _)| NO_STD.contains(&name));
    if !is_watched || is_at(&file.path, ATOMIC_ADDRESSES) {
        return Vec::new();
    }
    let lines = (1..).zip(file.code_without_tests().lines());
    let hits = lines.filter(|(_, code)| ATOMICS.iter().any(|atomic| starts_word(code, atomic)));
    let breaches = hits.map(|(number, _)| {
        let instead = "use the Platform's Word, which the model checkers can watch";
        file.finding(number, "atomics", "an atomic outside word.rs", instead)
    });
    breaches.collect()
}

fn is_at(path: &str, addresses: &[Address]) -> bool {
    let covers = |place: &str| path == place || (place.ends_with('/') && path.starts_with(place));
    addresses.iter().any(|(place, _)| covers(place))
}

/// Does a word or path that starts with `needle` stand in `code`?
fn starts_word(code: &str, needle: &str) -> bool {
    let bytes = code.as_bytes();
    code.match_indices(needle).any(|(i, _)| i == 0 || !is_word(bytes[i - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&SourceFile) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
        rule(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    const NONE: [usize; 0] = [];

    #[test]
    fn unsafe_outside_its_addresses_is_found() {
        let text = "#![forbid(unsafe_code)] // no unsafe\nlet a = \"unsafe\";\nunsafe { b() }\n";
        for path in ["crates/tickless-core/src/queues/wheel.rs", "crates/tickless-core/tests/a.rs"]
        {
            assert_eq!(lines(unsafe_addresses, path, text), [3]);
        }
        let linked = ["crates/tickless-core/src/owned.rs", "crates/tickless-core/src/link/list.rs"];
        for path in linked {
            assert_eq!(lines(unsafe_addresses, path, text), NONE);
        }
        assert_eq!(lines(unsafe_addresses, "crates/tickless-core/src/link.rs.rs", text), [3]);
    }

    #[test]
    fn addresses_that_nobody_needs_are_found() {
        let all = |text: &str| {
            let path = |place: &str| {
                if place.ends_with('/') { format!("{place}a.rs") } else { place.to_string() }
            };
            let files =
                UNSAFE_ADDRESSES.iter().map(|(place, _)| SourceFile::new(&path(place), text));
            stale_addresses(&files.collect::<Vec<_>>()).len()
        };
        assert_eq!((all("unsafe {}"), all("// unsafe")), (0, UNSAFE_ADDRESSES.len()));
    }

    #[test]
    fn atomics_outside_the_seam_are_found() {
        let text = "use core::sync::atomic::Ordering;\nlet a: AtomicU64;\nlet non_atomic::b;\n\
                    #[cfg(test)]\nmod tests { use core::sync::atomic::AtomicBool; }";
        for path in
            ["crates/tickless-core/src/state.rs", "crates/tickless-core/src/bandwidth/permits.rs"]
        {
            assert_eq!(lines(atomics, path, text), [1, 2]);
        }
        for path in ["crates/tickless-core/src/word.rs", "crates/tickless/src/timers.rs"] {
            assert_eq!(lines(atomics, path, text), NONE);
        }
    }
}
