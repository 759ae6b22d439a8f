//! Prints the results of a study as tables, JSON or CSV.

use crate::output::{Results, bare, paragraph, to_width, width, write_csv, write_table};
use comfy_table::{ColumnConstraint, Width};
use std::io::{self, Write};
use tickless_lab::studies::{
    Band, Cell, Claim, Exhibit, Grid, Role, StudyResult, claim, grids, wanted,
};
use tickless_lab::text::figure;

impl Results for StudyResult {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let StudyResult { study: name, world, machine, seed, .. } = self;
        let title = format!("Study {name}, {}: {machine}, random seed {seed}", world.name());
        paragraph(out, "", &title)?;
        for Exhibit { title, header, rows } in &self.exhibits {
            writeln!(out)?;
            paragraph(out, "", &format!("{title}:"))?;
            let mut table = bare(header, 1);
            // Break headings of several words if the table would be too wide.
            to_width(&mut table);
            rows.iter().for_each(|row| {
                table.add_row(row);
            });
            write_table(&table, out)?;
        }
        for (role, title) in ROLES {
            let cells: Vec<&Cell> = self.cells.iter().filter(|cell| cell.role == role).collect();
            if cells.is_empty() {
                continue;
            }
            writeln!(out)?;
            paragraph(out, "", title)?;
            let (grids, listed) = grids(&cells);
            for (at, one) in grids.iter().enumerate() {
                if at > 0 {
                    writeln!(out)?;
                }
                grid(one, out)?;
            }
            if !grids.is_empty() && !listed.is_empty() {
                writeln!(out)?;
            }
            if !listed.is_empty() {
                cell_table(&listed, out)?;
            }
        }
        claims(self, out)?;
        if !self.notes.is_empty() {
            writeln!(out)?;
            self.notes.iter().try_for_each(|note| paragraph(out, "  - ", note))?;
        }
        for answer in &self.answers {
            writeln!(out)?;
            paragraph(out, "", &answer.question)?;
            paragraph(out, "  -> ", &answer.answer)?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "study,world,machine,seed,id,unit,published,role,value,low,high,band_low,\
            band_high,inside,effect,published_effect,null_model,score";
        let row = |cell: &Cell| {
            let Band(low, high) = cell.band.unwrap_or(Band(None, None));
            let claim = cell.compared.claim.as_ref();
            let effects = (claim.map(|it| it.effect), claim.and_then(Claim::published_effect));
            (
                (self.study, self.world, &self.machine, self.seed),
                (cell.id.clone(), cell.unit, cell.published, cell.role),
                (cell.value, cell.low, cell.high, low, high, cell.inside),
                (effects, cell.compared.null_model(), claim.and_then(Claim::score)),
            )
        };
        write_csv(header, self.cells.iter().map(row), out)
    }
}

/// The longest name of a result that leaves room for all columns of the table.
const NAME_MAX: usize = 28;

const ROLES: [(Role, &str); 4] = [
    (
        Role::Calibrated,
        "Calibrated (a parameter of the machine was set from these; they prove nothing):",
    ),
    (
        Role::Implied,
        "Implied (these follow from the parameters by a formula; they prove nothing either):",
    ),
    (Role::Predicted, "Predicted (nothing was set for these):"),
    (Role::Live, "Live (measured now; \"published\" is the authors' figure, of theirs):"),
];

/// Writes the medians of figures as tables, each with as many columns as fit. Headers have units.
fn grid(rows: &Grid<'_>, out: &mut dyn Write) -> io::Result<()> {
    let text = |cell: &Cell| format!("{}{}", figure(cell.value), verdict(cell));
    let name = |cell: &Cell| cell.id.rsplit('.').next().unwrap_or_default().replace('_', " ");
    let longest = |text: &str| text.split(' ').map(str::len).max().unwrap_or(0);
    let needs = |column: usize| {
        let cells = rows.iter().map(|(_, cells)| text(cells[column]).len());
        2 + cells.max().unwrap_or(0).max(longest(&name(rows[0].1[column])))
    };
    let label = 2 + rows.iter().map(|(row, _)| row.len()).max().unwrap_or(0);
    let count = rows[0].1.len();
    let mut from = 0;
    while from < count {
        let mut used = label;
        let fits = |&column: &usize| {
            used += needs(column);
            column == from || used <= width()
        };
        let to = from + (from..count).take_while(fits).count();
        let names = rows[0].1[from..to].iter().map(|cell| name(cell));
        let header: Vec<String> = [String::new()].into_iter().chain(names).collect();
        let mut table = bare(&header, 1);
        to_width(&mut table);
        let widths = [label].into_iter().chain((from..to).map(needs));
        for (column, least) in table.column_iter_mut().zip(widths) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least as u16)));
        }
        for (row, cells) in rows {
            let medians = cells[from..to].iter().map(|cell| text(cell));
            table.add_row([row.to_string()].into_iter().chain(medians));
        }
        write_table(&table, out)?;
        from = to;
    }
    Ok(())
}

/// Writes a table of results (*cells*). Results whose names have the same beginning are grouped
/// below a row with that beginning. Columns that would be empty are left out.
fn cell_table(cells: &[&Cell], out: &mut dyn Write) -> io::Result<()> {
    let has_published = cells.iter().any(|cell| cell.published.is_some());
    let has_bands = cells.iter().any(|cell| !wanted(cell).is_empty());
    let columns = |[name, value, range, published, wanted]: [String; 5]| {
        let published = has_published.then_some(published);
        let wanted = has_bands.then_some(wanted);
        [name, value, range].into_iter().chain(published).chain(wanted).collect::<Vec<_>>()
    };
    let header = ["", "value", "low - high", "published", "wanted"].map(str::to_string);
    let mut table = bare(&columns(header), 1);
    let mut above = "";
    for cell in cells {
        let (group, name) = group_and_name(&cell.id);
        if group != above && !group.is_empty() {
            table.add_row([group]);
        }
        above = group;
        let indent = if group.is_empty() { "" } else { " " };
        table.add_row(columns([
            format!("{indent}{name}"),
            format!("{} {}", figure(cell.value), unit(cell)).trim_end().to_string(),
            range(cell),
            cell.published.map_or_else(|| "-".to_string(), figure),
            wanted_with_verdict(cell),
        ]));
    }
    if table.lines().any(|line| line.trim_end().chars().count() > width()) {
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((u16::from(at > 0), 0));
        }
    }
    write_table(&table, out)
}

fn claims(study: &StudyResult, out: &mut dyn Write) -> io::Result<()> {
    let claims: Vec<(&Cell, [String; 5])> =
        study.cells.iter().filter_map(|cell| Some((cell, claim(cell)?))).collect();
    if claims.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    paragraph(
        out,
        "",
        "What the mechanism changes (score: 1 is the published effect, 0 the null model's, which \
         is what one gets without the mechanism):",
    )?;
    for (cell, [effect, published, null, wanted, score]) in claims {
        let sign = verdict(cell);
        writeln!(out, "  {}", cell.id)?;
        let line = format!(
            "{effect}, published {published}, null {null}; wanted {wanted}{sign}, score {score}"
        );
        paragraph(out, "    ", &line)?;
    }
    Ok(())
}

/// Returns a mark for a result inside or outside of its expected range; empty without such a range.
fn verdict(cell: &Cell) -> &'static str {
    match cell.inside {
        Some(true) => " ok",
        Some(false) if cell.role == Role::Live => " NO",
        Some(false) => " missed",
        None => "",
    }
}

/// Splits the name of a result into its group and the remaining name: at the first dot, or at the
/// last dot if the remaining name would be too long for the column.
fn group_and_name(id: &str) -> (&str, &str) {
    let (group, name) = id.split_once('.').unwrap_or(("", id));
    if name.len() <= NAME_MAX { (group, name) } else { id.rsplit_once('.').unwrap_or(("", id)) }
}

/// Returns the unit of a result. Leaves out what a percentage refers to (`% of samples` becomes
/// `%`). Returns nothing if the name of the result contains the unit.
fn unit(cell: &Cell) -> &str {
    let unit = cell.unit.split(" of ").next().unwrap_or(cell.unit);
    let spelled = unit.replace('/', "_per_").replace('%', "percent");
    let is_word = cell.id.split(['.', '_']).any(|word| word == unit || word == spelled);
    let is_named = is_word || spelled.contains('_') && cell.id.ends_with(&spelled);
    if is_named { "" } else { unit }
}

fn range(cell: &Cell) -> String {
    if cell.low == cell.high {
        return "-".into();
    }
    format!("{} - {}", figure(cell.low), figure(cell.high))
}

fn wanted_with_verdict(cell: &Cell) -> String {
    match wanted(cell) {
        band if band.is_empty() => band,
        band => format!("{band}{}", verdict(cell)),
    }
}
