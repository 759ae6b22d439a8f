//! Names and signatures that say too little.
//!
//! Both rules take an inline exception, for names that somebody else's trait or C chose.

use crate::Finding;
use crate::source::SourceFile;

/// Prefixes that say nothing, and what to name a function instead.
const PREFIXES: &[(&str, &str, &str)] = &[
    ("get_", "get-name", "name it after what it returns"),
    ("do_", "do-name", "name it after its own step of the work"),
];

/// The names of this module's rules.
pub const RULES: &[&str] = &["get-name", "do-name", "bool-parameter"];

/// No function is called `get_...` or `do_...`.
pub fn prefixes(file: &SourceFile) -> Vec<Finding> {
    let breaches = file.functions().into_iter().filter_map(|function| {
        let hit = PREFIXES.iter().find(|(prefix, ..)| function.name.starts_with(prefix));
        hit.map(|(_, rule, instead)| {
            file.finding(function.line, rule, format!("`fn {}`", function.name), *instead)
        })
    });
    breaches.collect()
}

/// No public function of a library takes a `bool`: at the call, `true` says nothing.
pub fn bool_parameters(file: &SourceFile) -> Vec<Finding> {
    if file.library().is_none() {
        return Vec::new();
    }
    let public = file.functions().into_iter().filter(|function| {
        function.qualifiers.split_whitespace().next() == Some("pub")
            && has_bool(&function.parameters)
            && !file.lines[function.line - 1].test
    });
    let breaches = public.map(|function| {
        let what = format!("`pub fn {}` takes a bool", function.name);
        let instead = "take an enum with two named values";
        file.finding(function.line, "bool-parameter", what, instead)
    });
    breaches.collect()
}

/// Is one of these parameters a plain `bool`?
fn has_bool(parameters: &str) -> bool {
    let types = parameters.split(',').filter_map(|parameter| parameter.split_once(':'));
    types.map(|(_, kind)| kind.trim()).any(|kind| kind == "bool")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&SourceFile) -> Vec<Finding>, text: &str) -> Vec<usize> {
        let file = SourceFile::new("crates/tickless/src/a.rs", text);
        rule(&file).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn empty_prefixes_are_found() {
        let text = "fn get_a() {}\npub fn do_b() {}\nfn forget_c() {}\nfn redo_d() {}\nget_e();\n";
        assert_eq!(lines(prefixes, text), [1, 2]);
    }

    #[test]
    fn bool_parameters_are_found() {
        let text = "pub fn a(b: bool) {}\npub const fn c(\n    d: u64,\n    e: bool,\n) {}\n\
                    fn f(g: bool) {}\npub(crate) fn h(i: bool) {}\npub fn j(k: u64) -> bool {}\n\
                    #[must_use]\npub fn l<F: Fn(bool)>(m: F, n: bool) {}\n";
        assert_eq!(lines(bool_parameters, text), [1, 2, 10]);
    }
}
