//! A child process that takes one sample on each request, so that it is measured in turn with the
//! contenders of this process.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub struct Running {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Running {
    pub fn start(program: &Path, arguments: &[String]) -> Running {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let stdout = child.stdout.take().expect("it is piped");
        let mut running = Running { child, answers: BufReader::new(stdout) };
        assert_eq!(running.line(), "ready", "{} starts", program.display());
        running
    }

    /// Lets the child take a sample. Returns its answer.
    pub fn ask(&mut self) -> String {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        stdin.write_all(b"go\n").expect("the child reads");
        self.line()
    }

    /// Returns what the child says after its last answer.
    pub fn rest(mut self) -> String {
        let mut text = String::new();
        self.answers.read_to_string(&mut text).expect("the child writes text");
        text
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the child writes text");
        line.trim_end().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A child ends at the end of its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
