//! Computes the lines of the live screen, and what keys do. It does not access a terminal, so that
//! tests need none.

use super::View;
use super::cells::{cells, collision, header, lay_out, numbers_from, summary, total};
use crate::output::wrapped;
use clap::ValueEnum;
use console::{Key, Style, truncate_str};
use std::ops::ControlFlow;
use tickless_top::snapshot::Snapshot;
use tickless_top::table::{By, Sort, Table, between};

const KEYS: &str = "q quit  s sort  c callbacks  l lines  / filter  space freeze";

#[derive(Clone, Debug)]
pub(super) struct StyledLine {
    pub(super) text: String,
    pub(super) style: Style,
}

pub(super) struct Screen {
    view: View,
    before: Snapshot,
    after: Option<Snapshot>,
    is_frozen: bool,
    is_typing: bool,
    scrolled: usize,
}

impl Screen {
    pub(super) fn new(view: View, before: Snapshot) -> Screen {
        Screen { view, before, after: None, is_frozen: false, is_typing: false, scrolled: 0 }
    }

    /// Shows what was counted between the previous snapshot and this one. Does nothing while the
    /// screen is frozen: the first table after a freeze includes the time of the freeze.
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
        let mut table = between(&self.before, after, self.view.by);
        self.view.apply(&mut table);
        Some(table)
    }

    /// Performs the action of a key. Returns `Break` if the key ends the program.
    pub(super) fn key(&mut self, key: &Key) -> ControlFlow<()> {
        if matches!(key, Key::CtrlC) {
            return ControlFlow::Break(());
        }
        if self.is_typing {
            self.type_filter(key);
            return ControlFlow::Continue(());
        }
        match key {
            Key::Char('q') | Key::Escape => return ControlFlow::Break(()),
            Key::Char('s') | Key::ArrowRight => self.sort_by_next(1),
            Key::Char('S') | Key::ArrowLeft => self.sort_by_next(Sort::value_variants().len() - 1),
            Key::Char('c') => {
                self.view.by = match self.view.by {
                    By::Process => By::Callback,
                    By::Callback => By::Process,
                };
            }
            Key::Char('l') => self.view.command_lines = !self.view.command_lines,
            Key::Char(' ' | 'f') => self.is_frozen = !self.is_frozen,
            Key::Char('/') => self.is_typing = true,
            Key::ArrowUp => self.scrolled = self.scrolled.saturating_sub(1),
            Key::ArrowDown => self.scrolled += 1,
            Key::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            Key::PageDown => self.scrolled += 10,
            Key::Home => self.scrolled = 0,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn type_filter(&mut self, key: &Key) {
        match key {
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.view.filter.clear();
            }
            Key::Backspace => drop(self.view.filter.pop()),
            Key::Char(letter) => self.view.filter.push(*letter),
            _ => {}
        }
    }

    fn sort_by_next(&mut self, step: usize) {
        let all = Sort::value_variants();
        let at = all.iter().position(|sort| *sort == self.view.sort).unwrap_or(0);
        self.view.sort = all[(at + step) % all.len()];
    }

    /// Returns the lines for a terminal of this many rows and columns: a summary, the
    /// table from the row to which it is scrolled, and the list of keys.
    pub(super) fn lines(&mut self, (rows, columns): (u16, u16)) -> Vec<StyledLine> {
        const SUMMARY: usize = 2;
        let (rows, columns) = (usize::from(rows), usize::from(columns));
        let table = self.table();
        let summary = table.as_ref().map_or_else(|| "counting ...".to_string(), summary);
        let mut texts = wrapped("", &summary, columns);
        texts.resize(SUMMARY, String::new());
        let plain = |text| StyledLine { text, style: Style::new() };
        let mut lines: Vec<StyledLine> = texts.into_iter().map(plain).collect();
        if let Some(table) = table {
            let mut cut = vec![header(self.view.by).into_iter().map(str::to_string).collect()];
            self.scrolled = self.scrolled.min(table.rows.len().saturating_sub(1));
            let shown = || table.rows.iter().skip(self.scrolled).take(rows);
            cut.extend(shown().map(|row| {
                let mut cells = cells(&table, row, self.view.by);
                if let Some(command) = row.command.as_ref().filter(|_| self.view.command_lines) {
                    cells[0].clone_from(command);
                }
                cells
            }));
            cut.push(total(&table, self.view.by));
            let mut texts = lay_out(cut, numbers_from(self.view.by), columns).into_iter();
            let total = texts.next_back().unwrap_or_default();
            let header = texts.next().unwrap_or_default();
            lines.push(StyledLine { text: header, style: Style::new().reverse() });
            lines.extend(texts.map(plain));
            // Below the rows, if there is room.
            lines.extend(shown().filter_map(collision).map(|text| plain(format!("! {text}"))));
            // The totals are the last row of the screen.
            lines.truncate(rows.saturating_sub(2));
            lines.push(plain(total));
        }
        lines.resize(rows.saturating_sub(1), plain(String::new()));
        lines.push(StyledLine { text: self.foot(), style: Style::new().dim() });
        for StyledLine { text, .. } in &mut lines {
            *text = truncate_str(text, columns, "").into_owned();
        }
        lines
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
        let sort = sort.to_possible_value();
        let name = sort.as_ref().map_or("", |value| value.get_name());
        format!("{frozen}{filter}by {name}  |  {KEYS}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn drawn(screen: &mut Screen, width: u16) -> Vec<String> {
        let lines = screen.lines((8, width)).into_iter();
        lines.map(|line| line.text.trim_end().to_string()).collect()
    }

    /// Checks that the line with the number `line` begins with `text`.
    #[track_caller]
    fn begins(screen: &mut Screen, line: usize, text: &str) {
        let lines = drawn(screen, 80);
        assert!(lines[line].starts_with(text), "{lines:#?}");
    }

    /// Presses keys. Returns whether the last one ends the program.
    fn press(screen: &mut Screen, keys: &[Key]) -> bool {
        keys.iter().fold(false, |_, key| screen.key(key).is_break())
    }

    #[test]
    fn keys_sort_filter_freeze_scroll_and_end() {
        let view = View {
            by: By::Process,
            sort: Sort::Again,
            filter: String::new(),
            command_lines: false,
        };
        let mut screen = Screen::new(view, snapshot(1, [0, 0]));
        let screen = &mut screen;
        begins(screen, 0, "counting");
        screen.show(snapshot(3, [400, 1_000]));
        let lines = drawn(screen, 80);
        for (line, words) in [
            (0, ["timer events/s", "Cost:"]),
            (2, ["process", "wakes"]),
            (3, ["db", "500"]),
            (4, ["web", "100%"]),
            (7, ["by again", "q quit"]),
        ] {
            assert!(words.iter().all(|word| lines[line].contains(word)), "{words:?} {lines:#?}");
        }
        let narrow = drawn(screen, 20);
        assert!(narrow.len() == 8 && narrow.iter().all(|line| line.len() <= 20), "{narrow:#?}");
        press(screen, &vec![Key::ArrowDown; 50]);
        begins(screen, 3, "web");
        press(screen, &[Key::Home]);
        begins(screen, 3, "db");
        press(screen, &[Key::Char('s')]);
        begins(screen, 3, "web");
        press(screen, &[Key::Char('c')]);
        assert!(drawn(screen, 100)[3].contains("web_timer"));
        press(screen, &"/db".chars().map(Key::Char).collect::<Vec<_>>());
        begins(screen, 7, "filter: db_");
        press(screen, &[Key::Enter, Key::Char(' ')]);
        begins(screen, 3, "db");
        begins(screen, 7, "FROZEN  filter db");
        let frozen = drawn(screen, 80);
        assert!(frozen[4].starts_with("total"), "{frozen:#?}");
        screen.show(snapshot(5, [400, 9_000]));
        assert_eq!(drawn(screen, 80), frozen);
        press(screen, &[Key::Char(' ')]);
        screen.show(snapshot(7, [400, 9_000]));
        assert_ne!(drawn(screen, 80)[3], frozen[3]);
        assert!(!press(screen, &[Key::Char('/'), Key::Char('q')]));
        assert!(press(screen, &[Key::Escape, Key::Char('q')]));
        assert!(press(screen, &[Key::CtrlC]));
    }
}
