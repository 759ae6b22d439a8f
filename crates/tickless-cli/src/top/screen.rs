//! What the terminal shows, and what keys do.

use super::args::View;
use super::cells::{cells, header, numbers_from, summary};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table as Drawn, Wrap};
use tickless_top::snapshot::Snapshot;
use tickless_top::table::{By, Sort, Table, between};

const KEYS: &str = "q quit  s sort  c callbacks  / filter  space freeze  up, down scroll";

/// What to do after a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    GoOn,
    End,
}

/// What is shown.
pub(super) struct Screen {
    view: View,
    source: &'static str,
    notes: Vec<String>,
    before: Snapshot,
    after: Option<Snapshot>,
    is_frozen: bool,
    is_typing: bool,
    scrolled: usize,
}

impl Screen {
    pub(super) fn new(
        view: View,
        source: &'static str,
        notes: Vec<String>,
        before: Snapshot,
    ) -> Screen {
        Screen {
            view,
            source,
            notes,
            before,
            after: None,
            is_frozen: false,
            is_typing: false,
            scrolled: 0,
        }
    }

    /// What was counted since the last. A frozen screen keeps what it has, and the first table
    /// after it covers all of the time since.
    pub(super) fn show(&mut self, snapshot: Snapshot) {
        if self.is_frozen {
            return;
        }
        if let Some(last) = self.after.replace(snapshot) {
            self.before = last;
        }
    }

    fn table(&self) -> Option<Table> {
        let after = self.after.as_ref()?;
        let mut table = between(&self.before, after, self.view.by, self.source);
        self.view.apply(&mut table);
        Some(table)
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::GoOn;
        }
        let is_control_c =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control_c {
            return Next::End;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Next::GoOn;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Next::End,
            KeyCode::Char('s') | KeyCode::Right => self.sort_by_next(1),
            KeyCode::Char('S') | KeyCode::Left => self.sort_by_next(Sort::ALL.len() - 1),
            KeyCode::Char('c') => {
                self.view.by = match self.view.by {
                    By::Process => By::Callback,
                    By::Callback => By::Process,
                };
            }
            KeyCode::Char(' ' | 'f') => self.is_frozen = !self.is_frozen,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::Down => self.scrolled += 1,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            KeyCode::PageDown => self.scrolled += 10,
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        Next::GoOn
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.view.filter.clear();
            }
            KeyCode::Backspace => drop(self.view.filter.pop()),
            KeyCode::Char(letter) => self.view.filter.push(letter),
            _ => {}
        }
    }

    fn sort_by_next(&mut self, step: usize) {
        let at = Sort::ALL.iter().position(|sort| *sort == self.view.sort).unwrap_or(0);
        self.view.sort = Sort::ALL[(at + step) % Sort::ALL.len()];
    }

    pub(super) fn draw(&mut self, frame: &mut Frame) {
        let notes = self.notes.join(" ");
        let note_lines = u16::from(!notes.is_empty());
        let [head, note, body, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(note_lines),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let table = self.table();
        let summary = table.as_ref().map_or_else(|| "counting ...".to_string(), summary);
        frame.render_widget(Paragraph::new(summary).wrap(Wrap { trim: true }), head);
        frame.render_widget(Paragraph::new(notes), note);
        frame.render_widget(Paragraph::new(self.foot()).style(Modifier::DIM), foot);
        if let Some(table) = table {
            self.scrolled = self.scrolled.min(table.rows.len().saturating_sub(1));
            let skipped = self.scrolled;
            frame.render_widget(drawn(&table, &self.view, skipped), body);
        }
    }

    fn foot(&self) -> String {
        let View { sort, filter, .. } = &self.view;
        if self.is_typing {
            return format!("filter: {filter}_  (Enter keeps it, Esc drops it)");
        }
        let frozen = if self.is_frozen { "FROZEN  " } else { "" };
        let filter = match filter.as_str() {
            "" => String::new(),
            filter => format!("filter {filter}  "),
        };
        format!("{frozen}{filter}by {}  |  {KEYS}", sort.name())
    }
}

/// The table behind its first rows.
fn drawn<'a>(table: &Table, view: &View, skipped: usize) -> Drawn<'a> {
    let numbers_from = numbers_from(view.by);
    let aligned = |(at, text): (usize, String)| {
        let alignment = if at < numbers_from { Alignment::Left } else { Alignment::Right };
        Cell::new(Text::from(text).alignment(alignment))
    };
    let row = |words: Vec<String>| Row::new(words.into_iter().enumerate().map(aligned));
    let names = header(view.by).into_iter().map(str::to_string).collect();
    let rows = table.rows.iter().skip(skipped);
    // The first columns get what is left; the others are as wide as their figures can be.
    const NUMBERS: [u16; 9] = [5, 6, 5, 5, 4, 5, 5, 6, 9];
    let words = (0..numbers_from).map(|_| Constraint::Fill(1));
    let widths = words.chain(NUMBERS.map(Constraint::Length));
    Drawn::new(rows.map(|one| row(cells(table, one, view.by))), widths)
        .header(row(names).style(Style::new().add_modifier(Modifier::REVERSED)))
        .column_spacing(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use tickless_core::time::Ns;
    use tickless_top::snapshot::{Counts, Family, Row as Counted};

    fn snapshot(seconds: u64, arms: [u64; 2]) -> Snapshot {
        let row = |pid, process: &str, arms, cancels| Counted {
            pid,
            process: process.to_string(),
            function: format!("{process}_timer"),
            family: Family::Queue,
            counts: Counts { arms, cancels, expiries: arms - cancels, ..Counts::default() },
        };
        Snapshot {
            at: Ns(seconds * 1_000_000_000),
            rows: vec![row(7, "web", arms[0], arms[0]), row(9, "db", arms[1], 0)],
            sees_wakeups: true,
            ..Snapshot::default()
        }
    }

    fn screen() -> Screen {
        let view = View { by: By::Process, sort: Sort::Arms, filter: String::new() };
        Screen::new(view, "ebpf", Vec::new(), snapshot(1, [0, 0]))
    }

    fn drawn(screen: &mut Screen, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, 8)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..8).map(|y| line(y).trim_end().to_string()).collect()
    }

    fn press(screen: &mut Screen, keys: &[KeyCode]) -> Next {
        let mut next = Next::GoOn;
        for key in keys {
            next = screen.key(KeyEvent::new(*key, KeyModifiers::NONE));
        }
        next
    }

    #[test]
    fn rows_are_drawn_with_what_it_cost() {
        let mut screen = screen();
        assert!(drawn(&mut screen, 80)[0].starts_with("counting"));
        screen.show(snapshot(3, [400, 1_000]));
        let lines = drawn(&mut screen, 80);
        assert!(lines[0].contains("from ebpf") && lines[0].contains("Cost:"), "{lines:#?}");
        assert!(lines[2].starts_with("process") && lines[2].contains("wakes"), "{lines:#?}");
        assert!(lines[3].starts_with("db-9") && lines[3].contains("500"), "{lines:#?}");
        assert!(lines[4].starts_with("web-7") && lines[4].contains("100%"), "{lines:#?}");
        assert!(lines[7].contains("by arms"), "{lines:#?}");
        // A narrow one loses the names' ends and does not fall over.
        assert_eq!(drawn(&mut screen, 20).len(), 8);
    }

    #[test]
    fn keys_sort_filter_and_freeze() {
        let mut screen = screen();
        screen.show(snapshot(3, [400, 1_000]));
        press(&mut screen, &[KeyCode::Char('s')]);
        assert!(drawn(&mut screen, 80)[3].starts_with("web-7"), "by cancels");
        press(&mut screen, &[KeyCode::Char('c')]);
        assert!(drawn(&mut screen, 100)[3].contains("web_timer"));
        press(&mut screen, &"/db".chars().map(KeyCode::Char).collect::<Vec<_>>());
        assert!(drawn(&mut screen, 80)[7].starts_with("filter: db_"));
        press(&mut screen, &[KeyCode::Enter, KeyCode::Char(' ')]);
        let lines = drawn(&mut screen, 80);
        assert!(lines[3].starts_with("db-9") && lines[4].is_empty(), "{lines:#?}");
        assert!(lines[7].starts_with("FROZEN  filter db"), "{lines:#?}");
        screen.show(snapshot(5, [400, 9_000]));
        assert_eq!(drawn(&mut screen, 80), lines, "frozen");
        press(&mut screen, &[KeyCode::Char(' ')]);
        screen.show(snapshot(7, [400, 9_000]));
        assert_ne!(drawn(&mut screen, 80)[3], lines[3]);
    }

    #[test]
    fn it_ends_when_asked() {
        let mut screen = screen();
        assert_eq!(press(&mut screen, &[KeyCode::Char('/'), KeyCode::Char('q')]), Next::GoOn);
        assert_eq!(press(&mut screen, &[KeyCode::Esc, KeyCode::Char('q')]), Next::End);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.key(control_c), Next::End);
        screen.show(snapshot(3, [400, 1_000]));
        press(&mut screen, &[KeyCode::Down; 50]);
        assert!(drawn(&mut screen, 80)[3].starts_with("web-7"), "the last row stays");
        press(&mut screen, &[KeyCode::Home]);
        assert!(drawn(&mut screen, 80)[3].starts_with("db-9"));
    }
}
