//! Floors: which modules of a crate a module may use. No files may use each other in a circle.
//!
//! Each module of a crate has a floor. [`CRATES`] lists the floors from the bottom up, and a module
//! may use only modules of lower floors. Each path such as `crate::bases::start` or `super::start`
//! counts as a use, in a `use` declaration or anywhere else in code, except in the tests of a file.
//!
//! A *unit* is a file together with the folder of its own name, if there is one (`wheel.rs`,
//! `wheel/place.rs`). A folder with a `mod.rs` is a *room*, and each file in it is a unit. The
//! *front* of a room is its `mod.rs`, that of a crate its root. A front only lists and re-exports,
//! so it may use everything in its room. A file that takes a name from the front of its own room
//! would therefore close a circle, and a file that takes a name from the crate's root uses what is
//! above it.

use crate::Finding;
use crate::mask::{find_words, is_word};
use crate::source::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// A crate, or a folder of one (`crate::folder`), and its modules from the bottom up. The modules
/// of one floor do not use each other.
pub type Floors = (&'static str, &'static [&'static [&'static str]]);

/// The crates that are held to their floors.
pub const CRATES: &[Floors] = &[
    (
        "tickless-core",
        &[
            &["word", "time", "invariant"],
            &["clock", "bandwidth", "rearm", "periodic", "phase", "histogram"],
            &["platform"],
            &["state"],
            &["link"],
            &["queues"],
            &["local", "bases"],
            &["owned"],
        ],
    ),
    (
        "tickless-core::clock",
        &[
            &["counter"],
            &["slope"],
            &["segment"],
            &["sources", "discipline", "line", "ratchet", "skew", "combined"],
            &["watchdog"],
            &["timekeeper"],
        ],
    ),
    ("tickless-core::bandwidth", &[&["counts", "period"], &["settings"], &["permits"], &["group"]]),
    (
        "tickless::platform",
        &[
            &["bias", "chance", "clock_error", "driver", "relax", "runtime", "time_base", "wait"],
            &["try_lock", "wakeup"],
            &["cpu", "fork", "system_clock", "membarrier", "trusted"],
            &["counter", "lock", "manual_clock", "per_process", "portable"],
            &["comparison", "expirer", "parking", "worker"],
            &["clock"],
            &["device"],
            &["host", "watch", "watcher", "program_clocks"],
        ],
    ),
    (
        "tickless",
        &[
            &["events", "platform"],
            &["timer"],
            &["methods", "timers"],
            &["stats", "guarded", "time", "timeout", "hrtimer", "event_loop"],
            &["periodic", "clock_timer"],
            &["embed", "slots", "builder", "clock"],
            &["process", "virtual_time"],
            &["tokio_runtime"],
            &["bandwidth", "future", "policy"],
            &["tokio_time", "callback", "driver", "local", "book"],
        ],
    ),
];

const RULE: &str = "floors";

/// Finds paths in the listed crates that do not lead down, and files that use each other in a
/// circle.
pub fn arrows(files: &[SourceFile], crates: &[Floors]) -> Vec<Finding> {
    crates.iter().flat_map(|floors| House::new(files, *floors).findings()).collect()
}

/// A unit is a file together with the folder of its own name. `is_front` if the file only lists the
/// modules of a folder or crate.
struct Unit<'a> {
    file: &'a SourceFile,
    is_front: bool,
}

/// A crate's units, by module path.
struct House<'a> {
    floors: Floors,
    units: BTreeMap<Vec<&'a str>, Unit<'a>>,
    /// Every file of the crate, and the path of the unit (file with its folder) that it belongs to.
    files: Vec<(&'a SourceFile, Vec<&'a str>)>,
}

/// A path in the code: its line, and what it names, as a path from the crate's root.
struct Named<'a> {
    line: usize,
    path: Vec<&'a str>,
}

impl<'a> House<'a> {
    fn new(files: &'a [SourceFile], floors: Floors) -> House<'a> {
        let mut house = House { floors, units: BTreeMap::new(), files: Vec::new() };
        let sources = files.iter().filter_map(|file| match file.library() {
            Some((name, inside)) if name == house.name() => Some((file, inside)),
            _ => None,
        });
        let sources: Vec<_> = sources.collect();
        let is_folder_of_a_file = |folder: &str| {
            sources.iter().any(|(_, inside)| inside.strip_suffix(".rs") == Some(folder))
        };
        for (file, inside) in &sources {
            let stem = inside.trim_end_matches(".rs");
            let is_front = *inside == "lib.rs" || stem.ends_with("/mod");
            let stem = if *inside == "lib.rs" { "" } else { stem.trim_end_matches("/mod") };
            let ends = stem.match_indices('/').map(|(at, _)| at).chain([stem.len()]);
            let unit = ends.map(|end| &stem[..end]).find(|part| is_folder_of_a_file(part));
            let unit: Vec<&str> =
                unit.unwrap_or(stem).split('/').filter(|part| !part.is_empty()).collect();
            if is_front || inside.strip_suffix(".rs") == Some(&unit.join("/")) {
                house.units.insert(unit.clone(), Unit { file, is_front });
            }
            house.files.push((file, unit));
        }
        house
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut uses: BTreeMap<&[&str], BTreeSet<&[&str]>> = BTreeMap::new();
        for (file, unit) in &self.files {
            if self.units.get(unit).is_none_or(|unit| unit.is_front) {
                continue;
            }
            if self.is_inside(unit) && self.floor(unit).is_none() {
                let what = format!("`{}` is on no floor", unit.join("::"));
                findings.push(file.finding(1, RULE, what, "give it one in floors.rs"));
            }
            for named in self.named(file) {
                let target = self.resolve(&named.path);
                if self.looks_up(unit, target) {
                    let what =
                        format!("`{}` uses `crate::{}`", unit.join("::"), named.path.join("::"));
                    let instead = "move what it needs down to where both may use it";
                    findings.push(file.finding(named.line, RULE, what, instead));
                }
                if target != unit.as_slice() && !target.is_empty() {
                    uses.entry(unit).or_default().insert(target);
                }
            }
        }
        findings.extend(self.circles(&uses));
        findings
    }

    /// The crate's name.
    fn name(&self) -> &'static str {
        self.floors.0.split_once("::").map_or(self.floors.0, |(name, _)| name)
    }

    /// Returns the folder of the crate whose modules have floors; `None` if the modules of the
    /// crate's root have them.
    fn folder(&self) -> Option<&'static str> {
        self.floors.0.split_once("::").map(|(_, folder)| folder)
    }

    /// Returns whether a unit (a file with its folder) is in the part of the crate whose modules
    /// have floors.
    fn is_inside(&self, unit: &[&str]) -> bool {
        self.folder().is_none_or(|folder| unit.len() > 1 && unit[0] == folder)
    }

    /// Returns the name under which the list of floors should have a unit: that of the unit or of
    /// the module around it.
    fn module<'u>(&self, unit: &[&'u str]) -> Option<&'u str> {
        let depth = usize::from(self.folder().is_some());
        unit.get(depth).copied().filter(|_| self.is_inside(unit))
    }

    /// The number of a unit's floor.
    fn floor(&self, unit: &[&str]) -> Option<usize> {
        let top = self.module(unit)?;
        self.floors.1.iter().position(|floor| floor.contains(&top))
    }

    /// Returns whether the unit `from`, which uses `to`, must not: `to` is on a higher floor, or is
    /// another module of the same floor. A use that leaves the folder is judged by the floors of
    /// the crate's root.
    fn looks_up(&self, from: &[&str], to: &[&str]) -> bool {
        let leaves = self.folder().is_some() && to.first() != from.first();
        if !self.is_inside(from) || leaves || self.module(from) == self.module(to) {
            return false;
        }
        match (self.floor(from), self.floor(to)) {
            (Some(from), Some(to)) => to >= from,
            // The front of the folder or the crate is above all its modules. A module without a
            // floor has been reported already.
            _ => to.len() == usize::from(self.folder().is_some()),
        }
    }

    /// Returns the unit (file with its folder) that contains what a path names.
    fn resolve(&self, path: &[&'a str]) -> &[&'a str] {
        let longest = (0..=path.len()).rev().find_map(|len| self.units.get_key_value(&path[..len]));
        longest.map_or(&[], |(unit, _)| unit)
    }

    /// Returns the paths in the code of a file that begin with `crate::` or `super::`.
    fn named(&self, file: &'a SourceFile) -> Vec<Named<'a>> {
        let (_, inside) = file.library().unwrap_or_default();
        let module = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        let module: Vec<&str> = module.split('/').collect();
        let code = file.code_without_tests();
        let mut found = Vec::new();
        for (word, above) in [("crate", module.len()), ("super", 1)] {
            for at in find_words(code, word) {
                let rest = &code[at + word.len()..];
                if code[..at].ends_with("::") || !rest.starts_with("::") {
                    continue;
                }
                let rest = &rest[2..];
                let up = rest.split("::").take_while(|part| *part == "super").count();
                let base = module.len().saturating_sub(above + up);
                let mut paths = Vec::new();
                tree(&rest[up * 7..], &module[..base], &mut paths);
                let line = file.line_of(at);
                found.extend(paths.into_iter().map(|path| Named { line, path }));
            }
        }
        found
    }

    /// Finds units (files with their folders) that use each other in a circle. Each unit that uses
    /// itself through others is a finding.
    fn circles(&self, uses: &BTreeMap<&[&'a str], BTreeSet<&[&'a str]>>) -> Vec<Finding> {
        let next = |unit: &[&'a str]| -> Vec<&[&'a str]> {
            if self.units.get(unit).is_some_and(|unit| unit.is_front) {
                let inside =
                    |other: &&Vec<&str>| other.starts_with(unit) && other.len() > unit.len();
                return self.units.keys().filter(inside).map(Vec::as_slice).collect();
            }
            uses.get(unit).into_iter().flatten().copied().collect()
        };
        let mut findings = Vec::new();
        for (unit, stands_for) in &self.units {
            if stands_for.is_front {
                continue;
            }
            let (mut seen, mut open) = (BTreeSet::new(), next(unit));
            while let Some(other) = open.pop() {
                if seen.insert(other) {
                    open.extend(next(other));
                }
            }
            if seen.contains(unit.as_slice()) {
                let what = format!("`{}` is in a circle of files", unit.join("::"));
                let instead =
                    "move what both need into a file of its own; name the file, not the room";
                findings.push(stands_for.file.finding(1, RULE, what, instead));
            }
        }
        findings
    }
}

/// Appends to `paths` all paths of the use tree that `text` starts with, each with `base` before
/// it. Returns the length of the use tree.
fn tree<'a>(text: &'a str, base: &[&'a str], paths: &mut Vec<Vec<&'a str>>) -> usize {
    let mut path = base.to_vec();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let name = rest.bytes().take_while(|b| is_word(*b)).count();
        if name > 0 {
            path.push(&rest[..name]);
            at += name;
            if text[at..].starts_with("::") {
                at += 2;
                continue;
            }
        } else if rest.starts_with('{') {
            at += 1;
            while let Some(c) = text[at..].chars().next().filter(|c| *c != '}') {
                let ends = c.is_whitespace() || c == ',';
                at += if ends { 1 } else { tree(&text[at..], &path, paths).max(1) };
            }
            return at + 1;
        }
        paths.push(path);
        return at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOORS: &[Floors] = &[("a", &[&["low"], &["mid", "beside"], &["room"]])];

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let base = [("lib.rs", "mod low; mod mid; mod beside; mod room; pub use room::two::B;")];
        let files = base
            .iter()
            .chain(files)
            .map(|(path, text)| SourceFile::new(&format!("crates/a/src/{path}"), text));
        let files: Vec<_> = files.collect();
        arrows(&files, FLOORS).into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect()
    }

    #[test]
    fn arrows_that_lead_down_are_fine() {
        let none: [String; 0] = [];
        assert_eq!(
            found(&[
                ("low.rs", "use core::fmt; // crate::room"),
                ("mid.rs", "use crate::low::{A, B};"),
                (
                    "beside.rs",
                    "fn a() -> crate::low::A {}\n#[cfg(test)]\nmod tests { use crate::room::B; }"
                ),
                ("room/mod.rs", "mod one; mod two; pub use one::A;"),
                ("room/one.rs", "use crate::{low::A, mid};"),
                ("room/two.rs", "use super::one::{A, C};\nuse crate::mid::D;"),
            ]),
            none
        );
    }

    #[test]
    fn arrows_that_lead_up_are_found() {
        let low =
            |text| found(&[("low.rs", text), ("mid.rs", ""), ("beside.rs", ""), ("room.rs", "")]);
        assert_eq!(low("\nuse crate::mid::A;"), ["2: `low` uses `crate::mid::A`"]);
        assert_eq!(low("use super::room;"), ["1: `low` uses `crate::room`"]);
        assert_eq!(low("use crate::{\n  low::C, room::{A, B}};").len(), 2);
        assert_eq!(low("fn a(b: crate::mid::B) {}"), ["1: `low` uses `crate::mid::B`"]);
        assert_eq!(low("use crate::B;"), ["1: `low` uses `crate::B`"], "the root is above all");
        let beside = found(&[("low.rs", ""), ("mid.rs", "use crate::beside;"), ("beside.rs", "")]);
        assert_eq!(beside, ["1: `mid` uses `crate::beside`"]);
        assert_eq!(found(&[("new.rs", "")]), ["1: `new` is on no floor"]);
    }

    #[test]
    fn floors_inside_a_folder_are_checked() {
        let inside: &[Floors] = &[("a::room", &[&["one"], &["two"]])];
        let found = |one: &str, two: &str| {
            let files = [
                ("lib.rs", "mod low; mod room;"),
                ("low.rs", ""),
                ("room/mod.rs", "mod one; mod two;"),
                ("room/one.rs", one),
                ("room/two.rs", two),
            ];
            let files =
                files.map(|(path, text)| SourceFile::new(&format!("crates/a/src/{path}"), text));
            arrows(&files, inside).into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect()
        };
        let none: Vec<String> = found("use crate::low::A;", "use super::one::B;");
        assert_eq!(
            none,
            [] as [String; 0],
            "what leaves the folder is judged by its crate's floors"
        );
        let up: Vec<String> = found("\nuse crate::room::two::A;", "");
        assert_eq!(up, ["2: `room::one` uses `crate::room::two::A`"]);
        let front: Vec<String> = found("use super::A;", "");
        assert_eq!(front[0], "1: `room::one` uses `crate::room::A`");
    }

    #[test]
    fn circles_are_found() {
        let room = |one, two| {
            let front = "mod one; mod two; pub use two::B;";
            found(&[("room/mod.rs", front), ("room/one.rs", one), ("room/two.rs", two)])
        };
        let both =
            ["1: `room::one` is in a circle of files", "1: `room::two` is in a circle of files"];
        assert_eq!(room("use super::two::B;", "use super::one::A;"), both);
        assert_eq!(room("use super::B;", "use crate::room::one::A;"), both, "by the room's front");
        assert_eq!(room("use super::two::B;", ""), [] as [String; 0]);
        let helpers =
            found(&[("low.rs", "mod x; use x::A;"), ("low/x.rs", "use super::super::low::B;")]);
        assert_eq!(helpers, [] as [String; 0], "a file and its helpers are one unit");
    }
}
