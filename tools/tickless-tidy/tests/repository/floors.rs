//! Floors: which modules of a crate a module may use. No files may use each other in a circle.
//!
//! Each module of a crate has a floor. `floors.toml` lists them from the bottom up, and a module
//! may use only modules of lower floors. Each path such as `crate::bases::start` or `super::start`
//! counts as a use, in a `use` declaration or anywhere else in code, except in the tests of a file.
//!
//! A *unit* is a file together with the folder of its own name, if there is one (`wheel.rs`,
//! `wheel/place.rs`). A folder with a `mod.rs` is a *room*, and each file in it is a unit. The
//! *front* of a room is its `mod.rs`, that of a crate its root. A front only lists and re-exports,
//! so it may use everything in its room. A file that takes a name from the front of its own room
//! would therefore close a circle, and a file that takes a name from the crate's root uses what is
//! above it.

use crate::source::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// By crate, or folder of one (`crate::folder`): its floors from the bottom up, and the modules of
/// each, which do not use each other.
pub type Floors = BTreeMap<String, Vec<String>>;

/// The floors of every crate with more than a few files.
pub fn listed() -> Floors {
    read(include_str!("floors.toml"))
}

fn read(text: &str) -> Floors {
    toml::from_str(text).expect("a list of floors for each crate")
}

/// Finds paths in the listed crates that lead to a module which is not on a lower floor, and files
/// that use each other in a circle.
pub fn arrows(files: &[SourceFile], crates: &Floors) -> Vec<String> {
    crates.iter().flat_map(|(part, floors)| House::new(files, part, floors).breaches()).collect()
}

/// Finds crates of several files that have no floors.
pub fn without_floors(files: &[SourceFile], crates: &Floors) -> Vec<String> {
    let mut sources: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in files {
        if let Some((name, _)) = file.library() {
            sources.entry(name).or_default().push(file);
        }
    }
    sources.retain(|name, files| files.len() > 2 && !crates.contains_key(*name));
    let breach = |(name, files): (_, Vec<&SourceFile>)| {
        files[0].breach(1, &format!("the crate {name} has no floors"), "list them in floors.toml")
    };
    sources.into_iter().map(breach).collect()
}

struct Unit<'a> {
    file: &'a SourceFile,
    is_front: bool,
}

/// A crate's units, by module path.
struct House<'a> {
    /// The folder of the crate whose modules have floors; empty for the crate's root.
    folder: Vec<&'a str>,
    floors: &'a [String],
    units: BTreeMap<Vec<&'a str>, Unit<'a>>,
    /// Every file of the crate, and the path of its unit.
    files: Vec<(&'a SourceFile, Vec<&'a str>)>,
}

impl<'a> House<'a> {
    fn new(files: &'a [SourceFile], part: &'a str, floors: &'a [String]) -> House<'a> {
        let mut folder: Vec<&str> = part.split("::").collect();
        let name = folder.remove(0);
        let mut house = House { folder, floors, units: BTreeMap::new(), files: Vec::new() };
        let sources = files.iter().filter_map(|file| match file.library() {
            Some((of, inside)) if of == name => Some((file, inside)),
            _ => None,
        });
        let sources: Vec<_> = sources.collect();
        let is_folder_of_a_file = |folder: &str| {
            sources.iter().any(|(_, inside)| inside.strip_suffix(".rs") == Some(folder))
        };
        for (file, inside) in &sources {
            let stem = inside.trim_end_matches(".rs");
            // A `main.rs` is a crate of its own beside the library.
            if *inside == "main.rs" {
                continue;
            }
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

    fn breaches(&self) -> Vec<String> {
        let mut breaches = Vec::new();
        let mut uses: BTreeMap<&[&str], BTreeSet<&[&str]>> = BTreeMap::new();
        for (file, unit) in &self.files {
            if self.units.get(unit).is_none_or(|unit| unit.is_front) {
                continue;
            }
            if self.is_inside(unit) && self.floor(unit).is_none() {
                let what = format!("`{}` is on no floor", unit.join("::"));
                breaches.push(file.breach(1, &what, "give it one in floors.toml"));
            }
            for (line, path) in named(file) {
                let target = self.resolve(&path);
                if self.looks_up(unit, target) {
                    let what = format!("`{}` uses `crate::{}`", unit.join("::"), path.join("::"));
                    let instead = "move what it needs down to where both may use it";
                    breaches.push(file.breach(line, &what, instead));
                }
                if target != unit.as_slice() && !target.is_empty() {
                    uses.entry(unit).or_default().insert(target);
                }
            }
        }
        breaches.extend(self.circles(&uses));
        breaches
    }

    /// Returns whether a unit is in the part of the crate whose modules have floors.
    fn is_inside(&self, unit: &[&str]) -> bool {
        unit.starts_with(&self.folder) && unit.len() > self.folder.len()
    }

    /// Returns the number of the floor that lists the module of a unit: the unit itself, or the
    /// module of the folder that contains the unit.
    fn floor(&self, unit: &[&str]) -> Option<usize> {
        let module = unit.get(self.folder.len())?;
        self.floors.iter().position(|floor| floor.split(' ').any(|name| name == *module))
    }

    /// Returns whether the unit `from` breaks the rule when it uses `to`: if `to` is on a higher
    /// floor, or is another module of the same floor. Ignores a use that leaves the folder, which
    /// is judged by the floors of the crate's root.
    fn looks_up(&self, from: &[&str], to: &[&str]) -> bool {
        let depth = self.folder.len();
        let leaves = !to.starts_with(&self.folder);
        if !self.is_inside(from) || leaves || from.get(depth) == to.get(depth) {
            return false;
        }
        match (self.floor(from), self.floor(to)) {
            (Some(from), Some(to)) => to >= from,
            // A path of the length `depth` names the front of the folder or of the crate, which is
            // above all its modules. Otherwise a module has no floor, which was reported before.
            _ => to.len() == depth,
        }
    }

    /// Returns the unit (file with its folder) that contains what a path names.
    fn resolve(&self, path: &[&'a str]) -> &[&'a str] {
        let longest = (0..=path.len()).rev().find_map(|len| self.units.get_key_value(&path[..len]));
        longest.map_or(&[], |(unit, _)| unit)
    }

    /// Finds units (files with their folders) that use each other in a circle. Each unit that uses
    /// itself through others is a finding.
    fn circles(&self, uses: &BTreeMap<&[&'a str], BTreeSet<&[&'a str]>>) -> Vec<String> {
        let next = |unit: &[&'a str]| -> Vec<&[&'a str]> {
            if self.units.get(unit).is_some_and(|unit| unit.is_front) {
                let inside =
                    |other: &&Vec<&str>| other.starts_with(unit) && other.len() > unit.len();
                return self.units.keys().filter(inside).map(Vec::as_slice).collect();
            }
            uses.get(unit).into_iter().flatten().copied().collect()
        };
        let mut breaches = Vec::new();
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
                breaches.push(stands_for.file.breach(1, &what, instead));
            }
        }
        breaches
    }
}

/// Returns the paths in the code of a file that begin with `crate::` or `super::`, as paths from
/// the crate's root, with their lines.
fn named(file: &SourceFile) -> Vec<(usize, Vec<&str>)> {
    let (_, inside) = file.library().unwrap_or_default();
    let module = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    let module: Vec<&str> = module.split('/').collect();
    let code = file.code_without_tests();
    let token = |at: usize| code.get(at).map_or("", |(_, token)| token.as_str());
    let mut found = Vec::new();
    for at in 0..code.len() {
        let above = match token(at) {
            "crate" => module.len(),
            "super" => 1,
            _ => continue,
        };
        // `pub(in crate::a)` uses nothing.
        let is_inside = at > 0 && ["::", "in"].contains(&token(at - 1));
        if token(at + 1) != "::" || is_inside {
            continue;
        }
        let up = (0..).take_while(|up| token(at + 2 + 2 * up) == "super").count();
        let base = module.len().saturating_sub(above + up);
        let mut paths = Vec::new();
        tree(&code[at + 2 + 2 * up..], &module[..base], &mut paths);
        found.extend(paths.into_iter().map(|path| (code[at].0, path)));
    }
    found
}

/// Appends to `paths` all paths of the use tree that `code` starts with, each with `base` before
/// it. Returns the number of the use tree's tokens.
fn tree<'a>(code: &'a [(usize, String)], base: &[&'a str], paths: &mut Vec<Vec<&'a str>>) -> usize {
    let token = |at: usize| code.get(at).map_or("", |(_, token)| token.as_str());
    let is_name = |at| token(at).starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut path = base.to_vec();
    let mut at = 0;
    while is_name(at) {
        path.push(token(at));
        if token(at + 1) != "::" {
            paths.push(path);
            return at + 1;
        }
        at += 2;
    }
    if token(at) != "{" {
        paths.push(path);
        return at;
    }
    at += 1;
    while !["}", ""].contains(&token(at)) {
        at += tree(&code[at..], &path, paths).max(1);
        while token(at) == "," {
            at += 1;
        }
    }
    at + 1
}

const FLOORS: &str = r#"a = ["low", "mid beside", "room"]"#;

/// Returns the breaches in a crate that consists of these files: their lines and what is wrong,
/// without the text after `;`, which states what to do.
fn found(floors: &str, files: &[(&str, &str)]) -> Vec<String> {
    let root = ("lib.rs", "mod low; mod mid; mod beside; mod room; pub use room::two::B;");
    let source =
        |(path, text): &(&str, &str)| SourceFile::new(&format!("timers/a/src/{path}"), text);
    let files: Vec<_> = [root].iter().chain(files).map(source).collect();
    let place = |breach: &String| {
        let (place, _) = breach.split_once(';').unwrap();
        place.trim_start_matches("timers/a/src/").to_string()
    };
    arrows(&files, &read(floors)).iter().map(place).collect()
}

const NONE: [String; 0] = [];

#[test]
fn arrows_that_lead_down_are_fine() {
    let beside = "fn a() -> crate::low::A {}\n#[cfg(test)]\nmod tests { use crate::room::B; }";
    let files = [
        ("low.rs", "use core::fmt; // crate::room"),
        ("mid.rs", "use crate::low::{A, B};"),
        ("beside.rs", beside),
        ("room/mod.rs", "mod one; mod two; pub use one::A;"),
        ("room/one.rs", "use crate::{low::A, mid};"),
        ("room/two.rs", "use super::one::{A, C};\nuse crate::mid::D;"),
    ];
    assert_eq!(found(FLOORS, &files), NONE);
}

#[test]
fn crates_without_floors_are_found() {
    let files = ["lib", "b", "c"].map(|name| SourceFile::new(&format!("lab/x/src/{name}.rs"), ""));
    let found = without_floors(&files, &read(FLOORS));
    assert_eq!(found, ["lab/x/src/lib.rs:1: the crate x has no floors; list them in floors.toml"]);
    assert_eq!(without_floors(&files[1..], &read(FLOORS)), NONE);
    assert_eq!(without_floors(&files, &read("x = []")), NONE);
}

#[test]
fn arrows_that_lead_up_are_found() {
    for (low, wanted) in [
        ("\nuse crate::mid::A;", &["low.rs:2: `low` uses `crate::mid::A`"][..]),
        ("use super::room;", &["low.rs:1: `low` uses `crate::room`"]),
        ("fn a(b: crate::mid::B) {}", &["low.rs:1: `low` uses `crate::mid::B`"]),
        // The root is above all.
        ("use crate::B;", &["low.rs:1: `low` uses `crate::B`"]),
        (
            "use crate::{\n  low::C, room::{A, B}};",
            &["low.rs:1: `low` uses `crate::room::A`", "low.rs:1: `low` uses `crate::room::B`"],
        ),
    ] {
        let files = [("low.rs", low), ("mid.rs", ""), ("beside.rs", ""), ("room.rs", "")];
        assert_eq!(found(FLOORS, &files), wanted);
    }
    let beside = [("low.rs", ""), ("mid.rs", "use crate::beside;"), ("beside.rs", "")];
    assert_eq!(found(FLOORS, &beside), ["mid.rs:1: `mid` uses `crate::beside`"]);
    assert_eq!(found(FLOORS, &[("new.rs", "")]), ["new.rs:1: `new` is on no floor"]);
}

#[test]
fn floors_inside_a_folder_are_checked() {
    let inside = r#""a::room" = ["one", "two"]"#;
    let front = "mod one; mod two;";
    for (one, two, wanted) in [
        // A path that leads out of the folder is judged by the crate's floors, not by the folder's.
        ("use crate::low::A;", "use super::one::B;", None),
        ("\nuse crate::room::two::A;", "", Some("2: `room::one` uses `crate::room::two::A`")),
        ("use super::A;", "", Some("1: `room::one` uses `crate::room::A`")),
    ] {
        let files = [("low.rs", ""), ("room/mod.rs", front), ("room/one.rs", one)];
        let found = found(inside, &[&files[..], &[("room/two.rs", two)]].concat());
        let wanted = wanted.map(|what| format!("room/one.rs:{what}"));
        assert_eq!(found.first(), wanted.as_ref());
    }
}

#[test]
fn circles_are_found() {
    let room = |one, two| {
        let front = "mod one; mod two; pub use two::B;";
        found(FLOORS, &[("room/mod.rs", front), ("room/one.rs", one), ("room/two.rs", two)])
    };
    let both = ["one", "two"]
        .map(|file| format!("room/{file}.rs:1: `room::{file}` is in a circle of files"));
    assert_eq!(room("use super::two::B;", "use super::one::A;"), both);
    assert_eq!(room("use super::B;", "use crate::room::one::A;"), both, "by the room's front");
    assert_eq!(room("use super::two::B;", ""), NONE);
    // A file and the files in the folder of its name are one unit, so they may use each other.
    let helpers = [("low.rs", "mod x; use x::A;"), ("low/x.rs", "use super::super::low::B;")];
    assert_eq!(found(FLOORS, &helpers), NONE);
}
