//! Calls that library code does not make, each with what to write instead.
//!
//! Library code is `crates/*/src` without tests and without the command-line tool's `main.rs`.
//! A caller who can name why one of these is right says so inline, see [`crate::waiver`].

use crate::Finding;
use crate::mask::find_words;
use crate::source::SourceFile;

/// The crate that talks to a person, and may print.
const CLI: &str = "tickless-cli";

/// Which crates a ban is for.
#[derive(Clone, Copy)]
enum Scope {
    Everywhere,
    ExceptCli,
    Core,
}

struct Ban {
    rule: &'static str,
    call: &'static str,
    scope: Scope,
    instead: &'static str,
}

const fn ban(rule: &'static str, call: &'static str, scope: Scope, instead: &'static str) -> Ban {
    Ban { rule, call, scope, instead }
}

const RETURN: &str = "return an error that says what to do next, or let the type rule it out";
const FINISH: &str = "finish it or leave it out";
const PRINT: &str = "return the text; only the command-line tool prints";

const BANS: &[Ban] = &[
    ban("unwrap", ".unwrap()", Scope::Everywhere, RETURN),
    ban("expect", ".expect(", Scope::Everywhere, RETURN),
    ban("panic", "panic!", Scope::Everywhere, "return an error value: failures are values here"),
    ban("todo", "todo!", Scope::Everywhere, FINISH),
    ban("unimplemented", "unimplemented!", Scope::Everywhere, FINISH),
    ban("dbg", "dbg!", Scope::Everywhere, "remove it, or trace through the trace sink"),
    ban("print", "println!", Scope::ExceptCli, PRINT),
    ban("print", "eprintln!", Scope::ExceptCli, PRINT),
    ban("print", "print!", Scope::ExceptCli, PRINT),
    ban("print", "eprint!", Scope::ExceptCli, PRINT),
    ban("sleep", "thread::sleep", Scope::Everywhere, "park on an event, or advance virtual time"),
    ban("instant-now", "Instant::now", Scope::Core, "take `now` as an argument"),
];

/// The names of this module's rules.
pub const RULES: &[&str] =
    &["unwrap", "expect", "panic", "todo", "unimplemented", "dbg", "print", "sleep", "instant-now"];

/// Library code makes none of the banned calls.
pub fn banned_calls(file: &SourceFile) -> Vec<Finding> {
    let Some(library) = file.library() else {
        return Vec::new();
    };
    if library == CLI && file.path.ends_with("/src/main.rs") {
        return Vec::new();
    }
    let applies = |ban: &&Ban| match ban.scope {
        Scope::Everywhere => true,
        Scope::ExceptCli => library != CLI,
        Scope::Core => matches!(library, "tickless-core" | "tickless-clock"),
    };
    BANS.iter().filter(applies).flat_map(|ban| breaches(file, ban)).collect()
}

fn breaches(file: &SourceFile, ban: &Ban) -> Vec<Finding> {
    let lines = file.numbered().filter(|(_, line)| !line.test);
    let hits = lines.filter(|(_, line)| !find_words(&line.code, ban.call).is_empty());
    let finding = |number| {
        file.finding(number, ban.rule, format!("`{}` in library code", ban.call), ban.instead)
    };
    hits.map(|(number, _)| finding(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        banned_calls(&SourceFile::new(path, text)).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn every_banned_call_is_found() {
        for ban in BANS {
            let call = format!("fn a() {{ x{}(1) }}", ban.call);
            let call = if ban.call.starts_with('.') { call } else { call.replace('x', " std::") };
            assert_eq!(rules("crates/tickless-core/src/a.rs", &call), [ban.rule], "{call}");
            assert!(RULES.contains(&ban.rule));
        }
    }

    #[test]
    fn tests_comments_and_names_alike_are_left_alone() {
        let text = "//! let a = b.unwrap();\nfn a() { b.unwrap_or(1).expect_err(c) }\n\
                    const A: &str = \"panic!\";\n\
                    #[cfg(test)]\nmod tests {\n    fn a() { b.unwrap() }\n}\n";
        assert_eq!(rules("crates/tickless/src/a.rs", text), [] as [&str; 0]);
        assert_eq!(rules("crates/tickless/tests/a.rs", "a.unwrap();"), [] as [&str; 0]);
    }

    #[test]
    fn a_ban_holds_in_its_scope_only() {
        assert_eq!(rules("crates/tickless-cli/src/table.rs", "println!(); a.unwrap()"), ["unwrap"]);
        assert_eq!(rules("crates/tickless-cli/src/main.rs", "a.unwrap()"), [] as [&str; 0]);
        assert_eq!(rules("crates/tickless/src/main.rs", "a.unwrap()"), ["unwrap"]);
        assert_eq!(rules("crates/tickless/src/a.rs", "Instant::now()"), [] as [&str; 0]);
    }
}
