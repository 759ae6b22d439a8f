use crate::sample::{ALTERNATIVE, Contender, Figure, Outcomes, interleave};
use std::fmt::Write;

#[derive(Debug)]
pub struct Table {
    pub case: String,
    pub title: String,
    pub about: String,
    pub skipped: Option<String>,
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
    /// Rows of another build, as text. They follow the last row of tokio's.
    others: String,
}

#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub note: Option<String>,
    pub cells: Vec<Option<Cell>>,
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub figure: Figure,
    pub unit: &'static str,
}

/// A column: its name, its unit, and the part of an outcome that it shows.
pub type Column<T> = (&'static str, &'static str, fn(&T) -> f64);

impl Table {
    pub fn new(case: &str, title: &str, about: &str) -> Table {
        let (columns, rows) = (Vec::new(), Vec::new());
        let [case, title, about] = [case, title, about].map(str::to_string);
        Table { case, title, about, skipped: None, columns, rows, others: String::new() }
    }

    pub fn column(&mut self, name: &str) -> usize {
        self.columns.push(name.to_string());
        self.columns.len() - 1
    }

    pub fn put(&mut self, row: &str, column: usize, unit: &'static str, figure: Option<Figure>) {
        let width = self.columns.len();
        let cells = &mut self.row(row).cells;
        cells.resize(cells.len().max(width), None);
        cells[column] = figure.map(|figure| Cell { figure, unit });
    }

    pub fn put_all<T>(&mut self, columns: &[Column<T>], rows: &[Outcomes<T>]) {
        for &(column, unit, part) in columns {
            let column = self.column(column);
            for (name, outcomes) in rows {
                self.put(name, column, unit, Figure::of(outcomes.iter().map(part).collect()));
            }
        }
    }

    /// Adds a column of times in ns: the samples of each contender, taken in turn.
    pub fn measure(&mut self, column: &str, contenders: Vec<Contender<'_>>, repetitions: usize) {
        let column = self.column(column);
        for (name, samples) in interleave(contenders, repetitions) {
            self.put(name, column, "ns", Figure::of(samples));
        }
    }

    /// Adds a column, and one of `ratios` of each row to the row that `other` names for it.
    pub fn put_beside(
        &mut self,
        column: &str,
        samples: &[Outcomes<f64>],
        (ratios, ratio): (&mut Table, &str),
        other: impl Fn(&str) -> Option<&'static str>,
    ) {
        let (column, ratio) = (self.column(column), ratios.column(ratio));
        for (name, of_this) in samples {
            self.put(name, column, "ns", Figure::of(of_this.clone()));
            let of = |other| samples.iter().find(|(name, _)| *name == other);
            if let Some((_, others)) = other(name).and_then(of) {
                ratios.put(name, ratio, "x", Figure::of_ratios(of_this, others));
            }
        }
    }

    /// Adds rows that another build measured, from the text of its page.
    pub fn add_rows(&mut self, page: &str) {
        let heading = format!("### {}: {}\n", self.case, self.title);
        let rest = page.split_once(&heading).map_or("", |(_, rest)| rest);
        let of_this = rest.lines().take_while(|line| !line.starts_with("###"));
        let rows = of_this.filter(|line| line.contains(ALTERNATIVE));
        self.others = rows.map(|row| format!("{row}\n")).collect();
    }

    pub fn note(&mut self, row: &str, note: &str) {
        self.row(row).note = Some(note.to_string());
    }

    pub fn skip(&mut self, why: &str) {
        self.skipped = Some(why.to_string());
    }

    pub fn in_column(&self, column: &str) -> impl Iterator<Item = (&str, &Cell)> {
        let column = self.columns.iter().position(|name| name == column);
        self.rows.iter().filter_map(move |row| {
            let cell = row.cells.get(column?)?.as_ref()?;
            Some((row.name.as_str(), cell))
        })
    }

    fn row(&mut self, name: &str) -> &mut Row {
        let place = self.rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
            self.rows.push(Row { name: name.to_string(), note: None, cells: Vec::new() });
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }

    pub fn markdown(&self, unit: Figure) -> String {
        let mut text = format!("### {}: {}\n\n", self.case, self.title);
        if let Some(why) = &self.skipped {
            return text + &format!("Skipped: {why}.\n");
        }
        let noted = self.rows.iter().any(|row| row.note.is_some());
        let notes = if noted { " how |" } else { "" };
        let line = if noted { "---|" } else { "" };
        let _ = writeln!(text, "{}\n", self.about);
        let _ = writeln!(text, "| |{notes} {} |", self.columns.join(" | "));
        let _ = writeln!(text, "|---|{line}{}", "--:|".repeat(self.columns.len()));
        let last_of_tokio = self.rows.iter().rposition(|row| row.name.starts_with("tokio"));
        for (nth, row) in self.rows.iter().enumerate() {
            let _ = write!(text, "| {} |", row.name);
            if noted {
                let _ = write!(text, " {} |", row.note.as_deref().unwrap_or_default());
            }
            for cell in &row.cells {
                let _ =
                    write!(text, " {} |", cell.as_ref().map_or("-".into(), |cell| cell.text(unit)));
            }
            text.push('\n');
            if Some(nth) == last_of_tokio {
                text.push_str(&self.others);
            }
        }
        text
    }
}

impl Cell {
    fn text(&self, unit: Figure) -> String {
        let Figure { median, least, most, samples } = self.figure;
        let name = self.unit;
        let value = if name == "ns" { number(median) } else { with_unit(median, name) };
        if samples < 2 {
            return value;
        }
        let digits = if name == "x" { ratio } else { number };
        let spread = format!("{value} ({}..{})", digits(least), digits(most));
        if name == "ns" { format!("{spread} {:.1}x", median / unit.median) } else { spread }
    }
}

pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v < 0.01 => format!("{value:.1e}"),
        v if v < 0.1 => format!("{value:.2}"),
        v if v < 10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Ratios near one differ in their decimals.
fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "x" => format!("{}x", ratio(value)),
        "%" | "/s" => format!("{}{unit}", number(value)),
        "" => number(value),
        _ => format!("{} {unit}", number(value)),
    }
}

/// Returns the text of the page. `unit` is an uncontended atomic add in the same run, in ns.
pub fn markdown(machine: &str, tables: &[Table], unit: Figure) -> String {
    let Figure { median, least, most, .. } = unit;
    let mut text = format!("{machine}\n");
    let _ = writeln!(
        text,
        "A cell is the median of the samples, in ns unless it says otherwise, their least and \
         most, and the median as a multiple of an uncontended atomic add, which took \
         {median:.2} ns ({least:.2}..{most:.2}) in this run.\n"
    );
    for table in tables {
        let _ = write!(text, "\n{}", table.markdown(unit));
    }
    text
}
