//! The built program, run as a user runs it.

use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tickless");

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

pub fn file(name: &str, content: impl AsRef<[u8]>) {
    std::fs::write(path(name), content).unwrap();
}

pub fn page(name: &str) -> String {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src");
    std::fs::read_to_string(format!("{book}/{name}.md")).unwrap()
}

/// Gives the folder in which the program runs a link to one of the repository.
pub fn place(folder: &str) {
    let to = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let link = path(folder.rsplit('/').next().unwrap());
    if !link.exists() {
        // Another test may do this at the same time.
        let _ = std::fs::remove_file(&link);
        let _ = symlink(to, link);
    }
}

/// Returns the program with these arguments, which are separated by spaces. The folder in which it
/// runs has the committed traces as `traces`.
pub fn program(line: &str) -> Command {
    place("traces");
    let mut command = Command::new(PROGRAM);
    command.args(line.split_whitespace()).current_dir(path("")).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[derive(Debug)]
pub struct Ended {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ended {
    fn from(Output { status, stdout, stderr }: Output) -> Ended {
        let [out, err] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        Ended { status: status.code(), out, err }
    }
}

impl Ended {
    pub fn of(command: &mut Command) -> Ended {
        command.output().unwrap().into()
    }

    /// Checks the exit status, and that the messages on standard error have all these words.
    #[track_caller]
    pub fn exits(self, status: i32, words: &[&str]) -> Ended {
        assert_eq!(self.status, Some(status), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {self:?}");
        }
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert!(matches!(self.status, Some(0 | 3)), "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

pub fn tickless(line: &str) -> Ended {
    Ended::of(&mut program(line))
}

#[track_caller]
pub fn prints(line: &str) -> String {
    tickless(line).exits(0, &[]).out
}

#[track_caller]
pub fn json(line: &str) -> Value {
    tickless(&format!("{line} --format json")).json()
}

#[track_caller]
pub fn fits<'a>(lines: impl IntoIterator<Item = &'a str>) {
    for line in lines {
        let is_plain = !line.ends_with(' ') && !line.contains('\u{1b}');
        assert!(line.chars().count() <= 80 && is_plain, "{line:?}");
    }
}

pub fn signal(pid: u32, signal: &str) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Runs a command line that gets Ctrl-C half a second after its start: its handler is installed by
/// then, and its work has not ended.
pub fn interrupted(line: &str) -> Ended {
    let child = program(line).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    signal(child.id(), "-INT");
    child.wait_with_output().unwrap().into()
}
