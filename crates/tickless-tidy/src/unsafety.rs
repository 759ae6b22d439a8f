//! Where unsafe code and atomics may stand, and what must stand above them.
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
    ("crates/tickless-core/src/link/", "intrusive nodes are reached through pointers"),
    (
        "crates/tickless-models/tests/models/place.rs",
        "models free timers, to see who still uses them",
    ),
    ("crates/tickless-core/tests/all/queue.rs", "tests own the nodes that they hand in"),
    ("crates/tickless-core/tests/all/wheel/nodes.rs", "tests own the nodes that they hand in"),
    ("crates/tickless-core/benches/queue.rs", "benches own the nodes that they hand in"),
    ("crates/tickless-core/benches/wheel.rs", "benches own the nodes that they hand in"),
    ("crates/tickless/src/host/", "system calls and counter instructions"),
    ("crates/tickless/tests/fork.rs", "fork(2) can only be called so"),
    ("crates/tickless/tests/all/refused.rs", "seccomp(2) can only be called so"),
    ("crates/tickless-cli/src/measure/stopwatch.rs", "the counter instruction by itself"),
    ("crates/tickless-capi/", "pointers come from and go to C"),
    ("crates/tickless-machine/src/fiber.rs", "a fiber finds its way out by a pointer"),
    ("bench/src/memory.rs", "an allocator that counts"),
    ("bench/src/cases/clocks.rs", "the counter instruction by itself"),
];

/// The only places in the sources of the core and the clocks that may name an atomic type.
pub const ATOMIC_ADDRESSES: &[Address] =
    &[("crates/tickless-clock/src/word.rs", "the seam defines what a Word is")];

const ATOMICS: &[&str] =
    &["sync::atomic", "atomic::", "AtomicU", "AtomicI", "AtomicBool", "AtomicPtr"];

/// `unsafe` stands only at [`UNSAFE_ADDRESSES`].
pub fn unsafe_addresses(file: &SourceFile) -> Vec<Finding> {
    if is_at(&file.path, UNSAFE_ADDRESSES) {
        return Vec::new();
    }
    let breaches = find_words(&file.code, "unsafe").into_iter().map(|at| {
        let instead = "call what link, host or capi offer, or give the file an address with a \
                       reason in UNSAFE_ADDRESSES";
        file.finding(file.line_of(at), "unsafe-address", "`unsafe` outside its addresses", instead)
    });
    breaches.collect()
}

/// Atomics stand only at [`ATOMIC_ADDRESSES`] of the core and the clocks; other crates are free.
pub fn atomics(file: &SourceFile) -> Vec<Finding> {
    if !matches!(file.library(), Some("tickless-core" | "tickless-clock"))
        || is_at(&file.path, ATOMIC_ADDRESSES)
    {
        return Vec::new();
    }
    let has_atomic = |code: &str| ATOMICS.iter().any(|atomic| starts_word(code, atomic));
    let lines = file.numbered().filter(|(_, line)| !line.test && has_atomic(&line.code));
    let breaches = lines.map(|(number, _)| {
        let instead = "use the Platform's Word, which the model checkers can watch";
        file.finding(number, "atomics", "an atomic outside platform.rs", instead)
    });
    breaches.collect()
}

/// Every unsafe block or impl has `SAFETY:` above it, every unsafe fn or trait `# Safety`.
pub fn safety_comments(file: &SourceFile) -> Vec<Finding> {
    let breaches = find_words(&file.code, "unsafe").into_iter().filter_map(|at| {
        let line = file.line_of(at);
        let above = file.comment_above(line);
        let (kind, instead) = match introduces(&file.code[at + "unsafe".len()..]) {
            Introduces::Promise if !above.contains("SAFETY:") => (
                "an unsafe block or impl without its reason",
                "say in a `// SAFETY:` comment right above why every condition holds",
            ),
            Introduces::Demand if !above.contains("# Safety") && !above.contains("SAFETY:") => (
                "an unsafe fn or trait without its conditions",
                "list in a `# Safety` section what the caller must make sure of",
            ),
            _ => return None,
        };
        Some(file.finding(line, "safety-comment", kind, instead))
    });
    breaches.collect()
}

/// What follows the word `unsafe`.
enum Introduces {
    /// A block, an impl or foreign declarations: the author promises something.
    Promise,
    /// A fn or a trait: somebody else must promise something.
    Demand,
    /// A function pointer's type or an attribute.
    Neither,
}

fn introduces(rest: &str) -> Introduces {
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix("extern") {
        Some(abi) => abi.trim_start_matches(['"', ' ', '\n']),
        None => rest,
    };
    let after_fn = rest.strip_prefix("fn").map(str::trim_start);
    let names_itself = after_fn.is_some_and(|name| !name.starts_with('('));
    if rest.starts_with('{') || rest.starts_with("impl") {
        Introduces::Promise
    } else if rest.starts_with("trait") || names_itself {
        Introduces::Demand
    } else {
        Introduces::Neither
    }
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
    fn unsafe_blocks_without_a_reason_are_found() {
        let bare = "let a =\n    unsafe { b() };\nunsafe impl Send for A {}\n\
                    unsafe extern \"C\" {\n}\n";
        assert_eq!(lines(safety_comments, "a.rs", bare), [2, 3, 4]);
        let apart = "// SAFETY: too far away.\n\nunsafe { b() }";
        assert_eq!(lines(safety_comments, "a.rs", apart), [3]);
        let reasoned = "// SAFETY: one,\n// two.\n#[inline]\nlet a =\n    unsafe { b() };\n\
                        // SAFETY: three.\nunsafe impl Send for A {}";
        assert_eq!(lines(safety_comments, "a.rs", reasoned), NONE);
    }

    #[test]
    fn unsafe_functions_without_conditions_are_found() {
        let bare = "/// Reads it.\npub unsafe fn a() {}\nunsafe extern \"C\" fn b() {}\n\
                    unsafe trait C {}";
        assert_eq!(lines(safety_comments, "a.rs", bare), [2, 3, 4]);
        let listed = "/// Reads it.\n///\n/// # Safety\n/// It is there.\n#[inline]\n\
                      pub unsafe fn a() {}\ntype F = unsafe extern \"C\" fn(u8);\n\
                      #[unsafe(no_mangle)]\n";
        assert_eq!(lines(safety_comments, "a.rs", listed), NONE);
    }

    #[test]
    fn atomics_outside_the_seam_are_found() {
        let text = "use core::sync::atomic::Ordering;\nlet a: AtomicU64;\nlet non_atomic::b;\n\
                    #[cfg(test)]\nmod tests { use core::sync::atomic::AtomicBool; }";
        assert_eq!(lines(atomics, "crates/tickless-core/src/state.rs", text), [1, 2]);
        for path in ["crates/tickless-clock/src/word.rs", "crates/tickless/src/timers.rs"] {
            assert_eq!(lines(atomics, path, text), NONE);
        }
    }
}
