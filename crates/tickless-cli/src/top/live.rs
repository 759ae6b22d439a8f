//! The live screen of `tickless top`: shows tables in the terminal and reacts to keys.

use super::View;
use super::batch::POLL;
use super::screen::{Line, Look, Next, Screen};
use crate::command::Failure;
use crate::record::command::{End, Waiting};
use console::{Style, Term};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, SetArg, Termios};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tickless_top::Ebpf;

/// Shows tables until the user presses the key to quit, or until a signal. Restores the terminal
/// afterwards, even if drawing fails.
pub(super) fn run(
    waiting: &Waiting,
    mut counting: Ebpf,
    interval: Duration,
    view: View,
) -> Result<(), Failure> {
    let mut screen = Screen::new(view, counting.snapshot()?);
    let terminal = Terminal::enter().map_err(Failure::output)?;
    let mut next = Instant::now() + interval;
    loop {
        let size = terminal.size();
        terminal.draw(&screen.lines(size)).map_err(Failure::output)?;
        match pass(waiting, &mut counting, &mut screen, (&terminal, size), next)? {
            Passed::Redraw => {}
            Passed::Interval => {
                screen.show(counting.snapshot()?);
                next = Instant::now() + interval;
            }
            Passed::End => return Ok(()),
        }
    }
}

enum Passed {
    Redraw,
    Interval,
    End,
}

fn pass(
    waiting: &Waiting,
    counting: &mut Ebpf,
    screen: &mut Screen,
    (terminal, size): (&Terminal, Size),
    until: Instant,
) -> Result<Passed, Failure> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Passed::Interval);
        }
        if Terminal::has_key(left.min(POLL)).map_err(Failure::output)? {
            let key = terminal.term.read_key_raw().map_err(Failure::output)?;
            return Ok(match screen.key(&key) {
                Next::End => Passed::End,
                Next::GoOn => Passed::Redraw,
            });
        }
        if waiting.pass(Duration::ZERO) == End::Signal {
            return Ok(Passed::End);
        }
        if terminal.size() != size {
            return Ok(Passed::Redraw);
        }
        counting.poll();
    }
}

type Size = (u16, u16);

/// The terminal, switched to its alternate screen and raw input. Dropping this value restores it.
struct Terminal {
    term: Term,
    before: Termios,
}

impl Terminal {
    fn enter() -> io::Result<Terminal> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        // Keep the output flags, so that a line feed still begins a new line.
        raw.output_flags = before.output_flags;
        let terminal = Terminal { term: Term::stdout(), before };
        termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw)?;
        terminal.term.write_str("\x1b[?1049h\x1b[?25l")?;
        Ok(terminal)
    }

    fn size(&self) -> Size {
        self.term.size()
    }

    fn has_key(time: Duration) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut input = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        match poll(&mut input, timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn draw(&self, lines: &[Line]) -> io::Result<()> {
        let mut frame = String::from("\x1b[H");
        for (place, Line { text, look }) in lines.iter().enumerate() {
            let style = match look {
                Look::Plain => Style::new(),
                Look::Header => Style::new().reverse(),
                Look::Faint => Style::new().dim(),
            };
            let end = if place + 1 < lines.len() { "\x1b[K\n" } else { "\x1b[K" };
            let _ = write!(frame, "{}{end}", style.force_styling(true).apply_to(text));
        }
        let mut out = &self.term;
        out.write_all(frame.as_bytes())?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ignore errors: if the terminal has been closed, it needs no restoring.
        let _ = self.term.write_str("\x1b[?25h\x1b[?1049l");
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.before);
    }
}
