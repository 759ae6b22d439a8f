//! The live screen of `tickless top`: shows tables in the terminal and reacts to keys.

use super::screen::{Screen, StyledLine};
use super::{POLL, View};
use crate::command::Failure;
use crate::record::command::{End, Waiting};
use console::Term;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fmt::Write as _;
use std::io::{self, Write};
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
        let size = terminal.term.size();
        terminal.draw(&screen.lines(size)).map_err(Failure::output)?;
        // Until there is something else to draw.
        while terminal.term.size() == size {
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                screen.show(counting.snapshot()?);
                next = Instant::now() + interval;
                break;
            }
            if Terminal::has_key(left.min(POLL)).map_err(Failure::output)? {
                let key = terminal.term.read_key_raw().map_err(Failure::output)?;
                if screen.key(&key).is_break() {
                    return Ok(());
                }
                break;
            }
            if waiting.pass(Duration::ZERO) == End::Signal {
                return Ok(());
            }
            counting.poll();
        }
    }
}

/// The terminal, switched to its alternate screen and raw input. Dropping this value restores it.
struct Terminal {
    term: Term,
    before: Termios,
}

impl Terminal {
    fn enter() -> io::Result<Terminal> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // Keep the output modes, so that a line feed still begins a new line.
        raw.output_modes = before.output_modes;
        let terminal = Terminal { term: Term::stdout(), before };
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
        terminal.term.write_str("\x1b[?1049h\x1b[?25l")?;
        Ok(terminal)
    }

    /// Waits for a key at most for `time`. A signal ends the wait early.
    fn has_key(time: Duration) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut input = [PollFd::new(&stdin, PollFlags::IN)];
        let timeout = Timespec::try_from(time).ok();
        match poll(&mut input, timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Draws all lines over the previous ones, so that the screen does not flicker.
    fn draw(&self, lines: &[StyledLine]) -> io::Result<()> {
        let mut frame = String::from("\x1b[H");
        for (place, StyledLine { text, style }) in lines.iter().enumerate() {
            let end = if place + 1 < lines.len() { "\x1b[K\n" } else { "\x1b[K" };
            let _ = write!(frame, "{}{end}", style.clone().force_styling(true).apply_to(text));
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
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }
}
