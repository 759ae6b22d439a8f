//! A terminal that is kept up to date.

use super::args::{TopError, View};
use super::batch::POLL;
use super::screen::{Next, Screen};
use crate::record::command::{End, Waiting};
use ratatui::crossterm::event::{self, Event};
use std::time::{Duration, Instant};
use tickless_top::source::Counting;

/// Shows tables until a key or a signal ends it. The terminal is as before then, also if drawing
/// fails.
pub(super) fn run(
    waiting: &Waiting,
    mut counting: Counting,
    interval: Duration,
    view: View,
    notes: Vec<String>,
) -> Result<(), TopError> {
    let mut screen = Screen::new(view, counting.name(), notes, counting.snapshot()?);
    let mut terminal = ratatui::try_init()?;
    let mut next = Instant::now() + interval;
    let ended = loop {
        if let Err(error) = terminal.draw(|frame| screen.draw(frame)) {
            break Err(error.into());
        }
        match pass(waiting, &mut counting, &mut screen, next) {
            Ok(Passed::Key) => {}
            Ok(Passed::Interval) => match counting.snapshot() {
                Ok(snapshot) => {
                    screen.show(snapshot);
                    next = Instant::now() + interval;
                }
                Err(error) => break Err(error.into()),
            },
            Ok(Passed::End) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    ended
}

enum Passed {
    /// Something may look different.
    Key,
    Interval,
    End,
}

/// Waits for the end of the interval, a key or a signal.
fn pass(
    waiting: &Waiting,
    counting: &mut Counting,
    screen: &mut Screen,
    until: Instant,
) -> Result<Passed, TopError> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Passed::Interval);
        }
        if event::poll(left.min(POLL))? {
            return Ok(match event::read()? {
                Event::Key(key) if screen.key(key) == Next::End => Passed::End,
                _ => Passed::Key,
            });
        }
        if waiting.pass(Duration::ZERO) == End::Signal {
            return Ok(Passed::End);
        }
        counting.poll()?;
    }
}
