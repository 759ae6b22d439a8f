use std::env;
use std::ffi::OsStr;
use std::process::Command;

/// Returns a command that runs one test of this binary in a child process, with a variable that
/// selects the child's task. A binary for another processor runs under the emulator that
/// `TICKLESS_TEST_RUNNER` names, with its arguments.
pub fn child_test(test: &str, variable: &str, task: impl AsRef<OsStr>) -> Command {
    let this = env::current_exe().expect("a path");
    let runner = env::var("TICKLESS_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut child = match words.next() {
        Some(program) => {
            let mut emulator = Command::new(program);
            emulator.args(words).arg(this);
            emulator
        }
        None => Command::new(this),
    };
    child.args(["--exact", test, "--nocapture"]).env(variable, task);
    child
}
