//! The machines in a list, and every number of one of them with where it comes from.

use crate::output::{Format, bare, paragraph, print, width};
use comfy_table::ContentArrangement;
use serde::Serialize;
use std::io::{self, Write};
use tickless_lab::studies::StudyError;
use tickless_machine::machines::{self, FILES};
use tickless_machine::spec::{Origin, Parameter, Spec};

/// A machine in the list.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// As the command line names it.
    name: &'static str,
    /// What it is called.
    title: String,
    about: String,
    cpus: u16,
    sockets: u16,
    /// How many of its numbers somebody published or measured.
    sourced: usize,
    /// How many were assumed, with a range.
    assumed: usize,
    /// How many were set so that a calibrated cell comes out.
    fitted: usize,
    /// Hash over all of them, as recorded where they change.
    fingerprint: String,
}

/// All that come with the program.
pub fn all() -> Result<Vec<Machine>, StudyError> {
    FILES
        .iter()
        .filter_map(|&(name, _)| Some((name, machines::named(name)?)))
        .map(machine)
        .collect()
}

fn machine(
    (name, spec): (&'static str, Result<Spec, tickless_machine::spec::SpecError>),
) -> Result<Machine, StudyError> {
    let spec = spec.map_err(|error| StudyError::Request { what: error.to_string() })?;
    let count = |is: fn(&Origin) -> bool| {
        spec.parameters().filter(|(_, parameter)| is(&parameter.origin)).count()
    };
    let topology = spec.costs().topology;
    Ok(Machine {
        name,
        title: spec.name.clone(),
        about: spec.about.clone(),
        cpus: topology.cpus(),
        sockets: topology.sockets,
        sourced: count(|origin| matches!(origin, Origin::Source(_))),
        assumed: count(|origin| matches!(origin, Origin::Assumed { .. })),
        fitted: count(|origin| matches!(origin, Origin::Fitted(_))),
        fingerprint: format!("{:016x}", spec.fingerprint()),
    })
}

/// Prints the list.
pub fn machines(all: &[Machine], format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, all)?;
            writeln!(out)
        }
        Format::Csv => rows(all, out),
        Format::Table => {
            let header = ["", "CPUs", "sockets", "sourced", "assumed", "fitted", "is"];
            let mut table = bare(&header, 1);
            for one in all {
                let [cpus, sockets] = [one.cpus, one.sockets].map(|count| count.to_string());
                let [sourced, assumed, fitted] =
                    [one.sourced, one.assumed, one.fitted].map(|count| count.to_string());
                let title = one.title.clone();
                table.add_row([one.name.into(), cpus, sockets, sourced, assumed, fitted, title]);
            }
            fit(&mut table, 6);
            print(&table, out)?;
            writeln!(out)?;
            paragraph(
                out,
                "",
                "Each number was sourced (published or measured), assumed (with a range that \
                 study --sim --sensitivity sweeps), or fitted to a cell, which is then shown as \
                 calibrated. tickless machines NAME shows them one by one.",
            )
        }
    }
}

/// One number.
#[derive(Clone, Debug, Serialize)]
struct Number<'a> {
    key: &'a str,
    value: f64,
    /// `source`, `assumed` or `fitted`.
    origin: &'static str,
    /// Who published it, why it was assumed, or which cell it was fitted to.
    from: &'a str,
    low: Option<f64>,
    high: Option<f64>,
}

fn number<'a>((key, parameter): (&'a str, &'a Parameter)) -> Number<'a> {
    let (origin, from, low, high) = match &parameter.origin {
        Origin::Source(source) => ("source", source, None, None),
        Origin::Assumed { low, high, because } => ("assumed", because, Some(*low), Some(*high)),
        Origin::Fitted(cell) => ("fitted", cell, None, None),
    };
    Number { key, value: parameter.value, origin, from, low, high }
}

/// Prints every number of a machine.
pub fn numbers(spec: &Spec, format: Format, out: &mut dyn Write) -> io::Result<()> {
    let numbers: Vec<Number<'_>> = spec.parameters().map(number).collect();
    match format {
        Format::Json => {
            let whole = serde_json::json!({
                "file": spec.file,
                "name": spec.name,
                "about": spec.about,
                "fingerprint": format!("{:016x}", spec.fingerprint()),
                "numbers": numbers,
            });
            serde_json::to_writer_pretty(&mut *out, &whole)?;
            writeln!(out)
        }
        Format::Csv => rows(&numbers, out),
        Format::Table => {
            paragraph(out, "", &format!("{}: {} ({})", spec.name, spec.about, spec.file))?;
            writeln!(out)?;
            let mut table = bare(&["", "value", "origin", ""], 1);
            for Number { key, value, origin, from, low, high } in numbers {
                let origin = match (low, high) {
                    (Some(low), Some(high)) => format!("{origin} {low} to {high}"),
                    _ => origin.to_string(),
                };
                table.add_row([key.to_string(), value.to_string(), origin, from.to_string()]);
            }
            fit(&mut table, 2);
            print(&table, out)
        }
    }
}

/// To the width of all tables; columns from `text_from` on are text.
fn fit(table: &mut comfy_table::Table, text_from: usize) {
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width() as u16);
    for column in table.column_iter_mut().skip(text_from) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
}

fn rows<T: Serialize>(rows: &[T], out: &mut dyn Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    csv.flush()
}
