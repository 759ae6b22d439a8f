//! The simulated run of the study `server`: its figures and plots.

use super::STUDY;
use super::contenders::Contender::{self, Fixed, Heaps, Mutex, Ours, Shards, Unbiased};
use super::limiter::Limits;
use super::model::{self, Case, Outcome};
use crate::error::LabError;
use crate::progress::Progress;
use crate::studies::cell::{Band, Cell};
use crate::studies::plot::Side::{self, After, Before, Beside};
use crate::studies::plot::{Axis, Line};
use crate::studies::request::Request;
use crate::studies::result::Column;
use crate::studies::result::StudyResult;
use crate::studies::sim;
use rayon::prelude::*;
use std::io;
use tickless_core::time::Ns;
use tickless_machine::size::{Sized, sizes};
use tickless_machine::spec::Spec;

/// Of 1,000 steps, how many happen on another CPU than the step before.
const STOLEN: [u64; 5] = [0, 1, 10, 100, 500];

const SEED: u64 = 1;

/// One simulated run: CPUs, design, the number of stolen steps in 1,000, and the outcome.
type Point = (u16, Contender, u64, Outcome);

const COLUMNS: [Column<Outcome>; 5] = [
    ("ns_per_request", "ns", |outcome| outcome.time_per_request),
    ("lines_per_operation", "lines", |outcome| outcome.lines_per_operation),
    ("membarriers_per_1000", "calls", |outcome| outcome.membarriers_per_1000),
    ("futexes_per_1000", "calls", |outcome| outcome.futexes_per_1000),
    ("p999_ns", "ns", |outcome| outcome.slow_operation),
];

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    let spec = sim::machine(request, "ivybridge-ex-16s", STUDY.needs)?;
    let mut result = sim::begin("server", request, progress, &[&spec]);
    let usual = request.effort.pick(
        &[2, 30][..],
        &[2, 8, 30, 120, 480],
        &[2, 4, 8, 16, 30, 60, 120, 240, 480],
    );
    let asked = sim::points(&mut result, request, &spec)?;
    let cpus = asked.as_deref().unwrap_or(usual);
    let short = request.effort.pick(Ns::from_us(200), Ns::from_us(400), Ns::from_ms(2));
    let all = cases(&Contender::ALL, &STOLEN, short);
    let points = points(&spec, cpus, &all).map_err(sim::no_memory)?;
    let [fewest, most] = ends(&points);
    let mut cells = cells("", &points, &[fewest, 30, most]);
    if fewest != most {
        cells.extend(growth(&points, [fewest, most]));
    }
    // A thread needs a millisecond to earn a bias, so runs that show what losing it costs are
    // longer.
    let span = request.effort.pick(Ns::from_ms(1), Ns::from_ms(6), Ns::from_ms(20));
    let biases = cases(&[Fixed, Ours, Unbiased], &[1], span);
    let biased = request.effort.pick(&[30][..], &[2, 30, 120], &[2, 8, 30, 120, 480]);
    let biased = self::points(&spec, biased, &biases).map_err(sim::no_memory)?;
    cells.extend(self::cells("long.", &biased, &[2, 30, 120, 480]));
    cells.extend(over_unbiased([&points, &biased]));
    for (name, limits) in [("one_limiter.", Limits::One), ("cpu_limiters.", Limits::EachCpu)] {
        let limited: Vec<Case> = cases(&[Ours], &[0, 100], short)
            .into_iter()
            .map(|case| Case { limits, ..case })
            .collect();
        let limited = self::points(&spec, cpus, &limited).map_err(sim::no_memory)?;
        cells.extend(self::cells(name, &limited, &[fewest, 30, most]));
    }
    sim::add(&mut result, request, Ok(cells))?;
    plots(&mut result, &points, &biased);
    sim::add_sensitivity(
        &mut result,
        request,
        &spec,
        |spec| Ok(spec.clone()),
        |spec| {
            let stolen = cases(&[Ours], &[100], Ns::from_us(200));
            Ok(growth(&self::points(spec, &[2, 60], &stolen)?, [2, 60]))
        },
    );
    result.explain(STUDY.published.text, &[]);
    Ok(result)
}

fn cases(contenders: &[Contender], stolen: &[u64], span: Ns) -> Vec<Case> {
    let limits = Limits::None;
    let case = |contender| move |&stolen| Case { contender, stolen, limits, span };
    contenders.iter().flat_map(|&contender| stolen.iter().map(case(contender))).collect()
}

/// Simulates each case on a machine with each of these numbers of CPUs.
fn points(like: &Spec, cpus: &[u16], cases: &[Case]) -> io::Result<Vec<Point>> {
    let sizes = sizes(like, cpus);
    let runs: Vec<(&Sized, Case)> =
        sizes.iter().flat_map(|size| cases.iter().map(move |&case| (size, case))).collect();
    let point = |(Sized { cpus, spec, .. }, case): (&Sized, Case)| {
        // Fewer CPUs serve fewer requests in the same time, so simulate them for longer.
        let times = (u64::from(60 / cpus)).clamp(1, 20);
        let case = Case { span: Ns(case.span.0 * times), ..case };
        Ok((*cpus, case.contender, case.stolen, model::run(spec, case, SEED)?))
    };
    runs.into_par_iter().map(point).collect()
}

fn ends(points: &[Point]) -> [u16; 2] {
    let cpus = || points.iter().map(|point| point.0);
    [cpus().min().unwrap_or(0), cpus().max().unwrap_or(0)]
}

/// Simulates all cases on the machine `spec`, with the number of CPUs that it has.
pub fn cells_of(spec: &Spec) -> io::Result<Vec<Cell>> {
    let cpus = spec.costs().topology.cpus();
    let cases = cases(&Contender::ALL, &STOLEN, Ns::from_us(200));
    Ok(cells("", &points(spec, &[cpus], &cases)?, &[cpus]))
}

/// Returns the name of a case: CPUs, contender, and the percentage of stolen steps.
fn id(cpus: u16, contender: Contender, stolen: u64) -> String {
    format!("{cpus}.{}.{}pct", contender.name(), percent(stolen).replace('.', "_"))
}

fn percent(stolen: u64) -> String {
    (stolen as f64 / 10.0).to_string()
}

/// Returns the figures of those points whose number of CPUs is in `shown`.
fn cells(prefix: &str, points: &[Point], shown: &[u16]) -> Vec<Cell> {
    let shown = points.iter().filter(|point| shown.contains(&point.0));
    let of = |(cpus, contender, stolen, outcome): &Point| {
        let case = format!("{prefix}{}", id(*cpus, *contender, *stolen));
        COLUMNS.map(|(name, unit, of)| Cell::predicted(format!("{case}.{name}"), unit, of(outcome)))
    };
    shown.flat_map(of).collect()
}

fn value(points: &[Point], cpus: u16, contender: Contender, stolen: u64) -> f64 {
    let is_it = |point: &&Point| (point.0, point.1, point.2) == (cpus, contender, stolen);
    points.iter().find(is_it).map_or(f64::NAN, |point| point.3.time_per_request)
}

/// Returns how many times longer a request takes with the most CPUs than with the fewest.
fn growth(points: &[Point], [fewest, most]: [u16; 2]) -> Vec<Cell> {
    let grow = |contender: Contender| {
        let at = |cpus| value(points, cpus, contender, 100);
        let name = format!("growth_{fewest}_to_{most}.{}.10pct", contender.name());
        let cell = Cell::predicted(name, "x", at(most) / at(fewest));
        let band = (contender == Contender::Ours && most >= 480).then_some(Band::at_most(1.5));
        cell.within(band)
    };
    let cells = Contender::ALL.map(grow).into_iter();
    cells.filter(|cell| !cell.value.is_nan()).collect()
}

/// Returns the time per request with a bias divided by the time without, at the worst point.
fn over_unbiased(runs: [&[Point]; 2]) -> [Cell; 2] {
    [Ours, Fixed].map(|contender| {
        let over = |points: &[Point]| {
            let of = |contender, point: &Point| value(points, point.0, contender, point.2);
            let over = points.iter().map(|point| of(contender, point) / of(Unbiased, point));
            over.fold(0.0, f64::max)
        };
        let name = format!("worst_over_unbiased.{}", contender.name());
        let band = (contender == Ours).then_some(Band::at_most(1.02));
        let worst = runs.map(over).into_iter().fold(0.0, f64::max);
        Cell::predicted(name, "x", worst).within(band)
    })
}

fn plots(result: &mut StudyResult, points: &[Point], biased: &[Point]) {
    let line = |points: &[Point], (contender, side): (Contender, Side), stolen| {
        let of = points.iter().filter(|point| (point.1, point.2) == (contender, stolen));
        let points = of.map(|point| [f64::from(point.0), point.3.time_per_request]).collect();
        Line::new(contender.name(), side, points)
    };
    let mut plot = |id, points, lines: [(Contender, Side); 3], stolen| {
        let title = format!("Time in timers per request, {} % stolen", percent(stolen));
        let lines = lines.map(|one| line(points, one, stolen)).to_vec();
        let axes = [Axis::log("CPUs"), Axis::log("ns in timers per request")];
        result.curve(id, title, axes, lines);
    };
    plot("others", points, [(Mutex, Before), (Ours, After), (Heaps, Beside)], 100);
    plot("none", points, [(Shards, Before), (Ours, After), (Heaps, Beside)], 0);
    plot("half", points, [(Shards, Before), (Ours, After), (Heaps, Beside)], 500);
    plot("bias", biased, [(Fixed, Before), (Ours, After), (Unbiased, Beside)], 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless_machine::machines;
    use tickless_machine::size::sized;

    const PAGE: &str = include_str!("../../../../../docs/dev/shared-words.md");

    fn limited(cpus: u16, contender: Contender, stolen: u64, limits: Limits) -> Outcome {
        let spec = sized(&machines::named("ivybridge-ex-16s").unwrap().unwrap(), cpus).spec;
        let case = Case { contender, stolen, limits, span: Ns::from_us(400) };
        model::run(&spec, case, SEED).unwrap()
    }

    fn outcome(cpus: u16, contender: Contender, stolen: u64) -> Outcome {
        limited(cpus, contender, stolen, Limits::None)
    }

    /// Goal: an operation moves no more lines between CPUs than `docs/dev/shared-words.md` allows:
    /// none if nothing is stolen. Method: the page's table has the share of stolen steps and the
    /// limit in each row.
    #[test]
    fn operations_move_no_more_lines_than_the_table_allows() {
        let rows = PAGE.lines().filter_map(|line| {
            let (share, limit) = line.strip_prefix("| ")?.split_once(" % | ")?;
            Some((share.parse::<f64>().ok()?, limit.strip_suffix(" |")?.parse::<f64>().ok()?))
        });
        let rows: Vec<(f64, f64)> = rows.collect();
        assert!(rows.len() == 4 && rows[0] == (0.0, 0.0), "{rows:?}");
        for (share, limit) in rows {
            let moved = outcome(30, Ours, (10.0 * share) as u64).lines_per_operation;
            assert!(moved <= limit && moved >= 0.7 * limit, "{share} % stolen: {moved} lines");
        }
        assert!(outcome(30, Mutex, 0).lines_per_operation > 1.0, "one lock moves lines");
    }

    /// Goal: taking a permit of one limiter for all CPUs moves its word between CPUs, no more often
    /// than the page's table allows. Taking a permit of the CPU's own limiter moves nothing.
    #[test]
    fn permits_move_no_more_lines_than_the_table_allows() {
        let moved = |limits| limited(30, Ours, 0, limits).lines_per_operation;
        let limit = 0.6;
        assert!(PAGE.contains(&format!("| 0 %, with one limiter | {limit} |")));
        let one = moved(Limits::One);
        assert!(one <= limit && one >= 0.7 * limit, "{one} lines");
        assert!(moved(Limits::EachCpu) == 0.0, "a limiter for each CPU moves lines");
    }

    /// Goal: if 30 CPUs make membarrier(2) expensive, a bias that is soon taken away costs little.
    #[test]
    fn a_bias_that_does_not_pay_costs_nothing() {
        let time = |contender, stolen| outcome(30, contender, stolen).time_per_request;
        for stolen in [1, 100] {
            let [ours, without] = [Ours, Unbiased].map(|one| time(one, stolen));
            assert!(ours < 1.05 * without, "{stolen}: {ours} ns, {without} ns without a bias");
        }
        assert!(time(Ours, 0) < 0.95 * time(Unbiased, 0), "it pays where nothing is stolen");
    }

    #[test]
    fn equal_runs_are_equal() {
        let run = || outcome(8, Ours, 100);
        assert_eq!(run(), run());
    }
}
