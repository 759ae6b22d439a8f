//! Finds the names of processes.

use std::collections::HashMap;
use std::fs;

#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<u32, String>);

impl Names {
    /// Returns the name of a process, which is read once from `/proc`. If the process has ended,
    /// returns the name that `ended` returns.
    pub(crate) fn name(&mut self, process: u32, ended: impl FnOnce() -> String) -> String {
        if process == 0 {
            return "kernel".to_string();
        }
        let name = || {
            let name = fs::read_to_string(format!("/proc/{process}/comm"));
            name.map_or_else(|_| ended(), |name| name.trim_end().to_string())
        };
        let name = self.0.entry(process).or_insert_with(name);
        // Processes choose their names. Control characters in a name could command the terminal.
        name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_to_print() {
        let mut names = Names::default();
        assert!(!names.name(std::process::id(), String::new).is_empty());
        assert_eq!(names.name(u32::MAX, || "a\u{1b}b".to_string()), "a?b");
        assert_eq!(names.name(0, String::new), "kernel");
    }
}
