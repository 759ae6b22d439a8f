//! Finds unused files: modules that no `mod` declares, and scripts that nothing calls.
//!
//! The compiler ignores a module file without a declaration, and the tests in it never run.

use crate::Finding;
use crate::mask::find_words;
use crate::source::SourceFile;

/// Finds `.rs` files under a `src` folder that are neither a crate's root nor declared by their
/// parent module.
pub fn unreachable_modules(files: &[SourceFile]) -> Vec<Finding> {
    let sources = files.iter().filter(|file| file.is_rust());
    let modules = sources.filter_map(|file| Some((file, Module::of(&file.path)?)));
    let orphans = modules.filter(|(file, module)| !module.is_declared(files, &file.path));
    let breaches = orphans.map(|(file, module)| {
        let what = format!("no `mod {};` declares this file", module.name);
        file.finding(1, "unused-file", what, "declare it in its parent module, or delete it")
    });
    breaches.collect()
}

/// Finds scripts in `ci/` that `.ci/run` does not call and the table of `ci/README.md` does not
/// list.
pub fn uncalled_scripts(files: &[SourceFile]) -> Vec<Finding> {
    let lines_of =
        |path| files.iter().filter(move |file| file.path == path).flat_map(|file| &file.lines);
    let called = |script: &SourceFile| {
        lines_of(".ci/run").any(|line| names(without_comment(line), &script.path))
    };
    let listed = |script: &SourceFile| {
        let mut rows = lines_of("ci/README.md").filter(|line| line.starts_with('|'));
        rows.any(|row| names(row, script.path.trim_start_matches("ci/")))
    };
    let scripts = files.iter().filter(|file| {
        file.path.starts_with("ci/") && file.path.ends_with(".sh") && file.path != "ci/lib.sh"
    });
    let unused = scripts.filter(|script| !called(script) && !listed(script));
    let breaches = unused.map(|script| {
        let instead = "call it from .ci/run, or add it to the table of long runs in ci/README.md";
        script.finding(1, "unused-file", "nothing runs this script", instead)
    });
    breaches.collect()
}

fn without_comment(shell: &str) -> &str {
    shell.split('#').next().unwrap_or_default()
}

fn names(line: &str, script: &str) -> bool {
    !find_words(line, script).is_empty()
}

/// A module that another file must declare.
struct Module<'a> {
    name: &'a str,
    /// The folder in which the parent's modules are.
    folder: &'a str,
}

impl<'a> Module<'a> {
    /// Returns the module of a file. `None` for a path outside `src`, and for a crate's root.
    fn of(path: &'a str) -> Option<Module<'a>> {
        let (folder, name) = path.strip_suffix(".rs")?.rsplit_once('/')?;
        let (_, inside) = path.rsplit_once("src/")?;
        let is_root = matches!(inside, "lib.rs" | "main.rs")
            || (inside.starts_with("bin/") && (inside.matches('/').count() == 1 || name == "main"));
        let (folder, name) = if name == "mod" { folder.rsplit_once('/')? } else { (folder, name) };
        (!is_root).then_some(Module { name, folder })
    }

    fn is_declared(&self, files: &[SourceFile], path: &str) -> bool {
        let files = files.iter().filter(|file| file.is_rust());
        let mut declarers = files.filter(|file| self.is_parent(&file.path));
        declarers.any(|file| declares(file, self.name) || names_path(file, path))
    }

    fn is_parent(&self, path: &str) -> bool {
        let in_folder = path.strip_prefix(self.folder).and_then(|rest| rest.strip_prefix('/'));
        let beside = path.strip_suffix(".rs") == Some(self.folder);
        beside || matches!(in_folder, Some("lib.rs" | "main.rs" | "mod.rs"))
    }
}

fn declares(file: &SourceFile, name: &str) -> bool {
    find_words(&file.code, "mod").into_iter().any(|at| {
        let rest = file.code[at + 3..].trim_start();
        rest.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(';'))
    })
}

/// Returns whether an attribute `#[path = "..."]` in this file names the file at `path`.
fn names_path(file: &SourceFile, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let named = format!("{name}\"");
    file.lines.iter().any(|line| line.trim_start().starts_with("#[path") && line.contains(&named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orphans(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
        let findings = [unreachable_modules(&files), uncalled_scripts(&files)].concat();
        findings.into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn undeclared_modules_are_found() {
        let found = orphans(&[
            ("crates/a/src/lib.rs", "mod b; // mod lost;\nmod c;\n#[path = \"other.rs\"]\nmod d;"),
            ("crates/a/src/b.rs", "mod e; mod lost_too { }"),
            ("crates/a/src/b/e.rs", ""),
            ("crates/a/src/b/c.rs", ""),
            ("crates/a/src/c/mod.rs", "mod f;"),
            ("crates/a/src/c/f.rs", ""),
            ("crates/a/src/other.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/src/lost_too.rs", ""),
            ("crates/a/src/bin/tool.rs", ""),
            ("crates/a/src/bin/two/main.rs", "mod g;"),
            ("crates/a/src/bin/two/g.rs", ""),
            ("crates/a/tests/t.rs", ""),
        ]);
        let lost = ["b/c.rs", "lost.rs", "lost_too.rs"].map(|f| format!("crates/a/src/{f}"));
        assert_eq!(found, lost);
    }

    #[test]
    fn uncalled_scripts_are_found() {
        let found = orphans(&[
            (".ci/run", "steps=(ci/fmt.sh ci/b.sh) # not ci/lost.sh"),
            ("ci/README.md", "lost.sh\n| `long.sh` | hours |"),
            ("ci/b.sh", ""),
            ("ci/fmt.sh", ""),
            ("ci/lib.sh", ""),
            ("ci/long.sh", ""),
            ("ci/lost.sh", ""),
        ]);
        assert_eq!(found, ["ci/lost.sh"]);
    }
}
