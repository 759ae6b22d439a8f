//! Prints the list of simulated machines, and all numbers of one machine with their sources.

use crate::output::{Results, bare, paragraph, to_width, write_csv, write_table};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::io::{self, Write};
use tickless_machine::machines::{self, FILES};
use tickless_machine::spec::{Origin, Parameter, Spec, SpecError};

#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    name: &'static str,
    title: String,
    about: String,
    cpus: u16,
    sockets: u16,
    sourced: usize,
    assumed: usize,
    fitted: usize,
    fingerprint: String,
}

pub fn all() -> Result<Vec<Machine>, SpecError> {
    let specs = FILES.iter().filter_map(|&(name, _)| Some((name, machines::named(name)?)));
    specs.map(|(name, spec)| Ok(machine(name, &spec?))).collect()
}

fn machine(name: &'static str, spec: &Spec) -> Machine {
    let count = |is: fn(&Origin) -> bool| {
        spec.parameters().filter(|(_, parameter)| is(&parameter.origin)).count()
    };
    let topology = spec.costs().topology;
    Machine {
        name,
        title: spec.name.clone(),
        about: spec.about.clone(),
        cpus: topology.cpus(),
        sockets: topology.sockets,
        sourced: count(|origin| matches!(origin, Origin::Source(_))),
        assumed: count(|origin| matches!(origin, Origin::Assumed { .. })),
        fitted: count(|origin| matches!(origin, Origin::Fitted(_))),
        fingerprint: format!("{:016x}", spec.fingerprint()),
    }
}

impl Results for [Machine] {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = ["", "CPUs", "sockets", "sourced", "assumed", "fitted", "is"];
        let mut table = bare(&header, 1);
        for one in self {
            let [cpus, sockets] = [one.cpus, one.sockets].map(|count| count.to_string());
            let [sourced, assumed, fitted] =
                [one.sourced, one.assumed, one.fitted].map(|count| count.to_string());
            let title = one.title.clone();
            table.add_row([one.name.into(), cpus, sockets, sourced, assumed, fitted, title]);
        }
        text_from(&mut table, 6);
        write_table(&table, out)?;
        writeln!(out)?;
        paragraph(
            out,
            "",
            "Each number was sourced (published or measured), assumed (with a range that study \
             --sim --sensitivity sweeps), or fitted to a cell, which is then shown as calibrated. \
             tickless machines NAME shows them one by one.",
        )
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv("", self, out)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Numbers<'a> {
    about: &'a str,
    file: &'a str,
    fingerprint: String,
    title: &'a str,
    numbers: Vec<Number<'a>>,
}

#[derive(Clone, Debug, Serialize)]
struct Number<'a> {
    key: &'a str,
    value: f64,
    origin: &'static str,
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

impl Numbers<'_> {
    pub fn of(spec: &Spec) -> Numbers<'_> {
        Numbers {
            file: &spec.file,
            title: &spec.name,
            about: &spec.about,
            fingerprint: format!("{:016x}", spec.fingerprint()),
            numbers: spec.parameters().map(number).collect(),
        }
    }
}

impl Results for Numbers<'_> {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        paragraph(out, "", &format!("{}: {} ({})", self.title, self.about, self.file))?;
        writeln!(out)?;
        let mut table = bare(&["", "value", "origin", ""], 1);
        for Number { key, value, origin, from, low, high } in &self.numbers {
            let origin = match (low, high) {
                (Some(low), Some(high)) => format!("{origin} {low} to {high}"),
                _ => origin.to_string(),
            };
            table.add_row([key.to_string(), value.to_string(), origin, from.to_string()]);
        }
        text_from(&mut table, 2);
        write_table(&table, out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv("", &self.numbers, out)
    }
}

fn text_from(table: &mut Table, first: usize) {
    to_width(table);
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Left);
    }
}
