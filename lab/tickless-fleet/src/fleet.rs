//! A summary of the traces of many machines: a row for each machine, quantiles over all machines,
//! and the machines that differ most, with the number in which they differ.
//!
//! The row of a trace that cannot be used has an error instead of numbers.

mod machine;

pub use machine::{FIGURES, Figure, Figures, Machine};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tickless_lab::progress::Progress;

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Fleet {
    pub machines: Vec<Machine>,
    pub quantiles: Vec<Spread>,
    pub differ: Vec<Differs>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Spread {
    pub figure: &'static str,
    pub unit: &'static str,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p95: f64,
    /// The unit of a machine's distance from the median: half the distance between the quartiles,
    /// but at least a quarter of all machines' mean distance from the median.
    #[serde(skip)]
    usual: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Differs {
    pub trace: String,
    pub figure: &'static str,
    pub unit: &'static str,
    pub value: f64,
    pub median: f64,
    pub distance: f64,
    pub why: String,
}

const DIFFER_MAX: usize = 10;

/// Replays these traces, in parallel on all CPUs. Once `stop` is set, no further trace is begun,
/// and the result has only the traces that were begun before.
pub fn fleet(paths: &[PathBuf], stop: &AtomicBool, progress: &dyn Progress) -> Fleet {
    progress.begin("replaying", paths.len());
    let one = |path: &PathBuf| {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let machine = Machine::read(path);
        progress.step();
        Some(machine)
    };
    Fleet::of(paths.par_iter().filter_map(one).collect())
}

impl Fleet {
    /// Compares machines: each figure's quantiles, and the machines farthest from the median.
    pub fn of(machines: Vec<Machine>) -> Fleet {
        let usable: Vec<(&Machine, &Figures)> =
            machines.iter().filter_map(|it| Some((it, it.figures.as_ref()?))).collect();
        let quantiles: Vec<Spread> = match usable.is_empty() {
            true => Vec::new(),
            false => FIGURES.iter().map(|figure| Spread::of(figure, &usable)).collect(),
        };
        let far = |(machine, figures)| Differs::of(machine, figures, &quantiles);
        let mut differ: Vec<Differs> = usable.into_iter().filter_map(far).collect();
        differ.sort_by(|one, other| other.distance.total_cmp(&one.distance));
        differ.truncate(DIFFER_MAX);
        Fleet { machines, quantiles, differ }
    }

    pub fn failed(&self) -> usize {
        self.machines.iter().filter(|machine| machine.error.is_some()).count()
    }
}

impl Spread {
    /// Computes the quantiles of a figure, and the unit for distances from its median.
    fn of(figure: &Figure, machines: &[(&Machine, &Figures)]) -> Spread {
        let mut values: Vec<f64> = machines.iter().map(|(_, it)| (figure.of)(it)).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        let [p5, p25, p50, p75, p95] = [0.05, 0.25, 0.5, 0.75, 0.95].map(at);
        // If half of all machines are equal, the quartiles are too, and every distance would be
        // infinite: then use a quarter of the mean distance.
        let mean = values.iter().map(|it| (it - p50).abs()).sum::<f64>() / values.len() as f64;
        let usual = ((p75 - p25) / 2.0).max(mean / 4.0);
        Spread { figure: figure.name, unit: figure.unit, p5, p25, p50, p75, p95, usual }
    }
}

impl Differs {
    /// Finds the number in which a machine is farthest from the median; `None` if there is none.
    fn of(machine: &Machine, figures: &Figures, quantiles: &[Spread]) -> Option<Differs> {
        let far = |(figure, spread): (&Figure, &Spread)| {
            let value = (figure.of)(figures);
            let distance = (value - spread.p50).abs() / spread.usual;
            (distance.is_finite() && distance > 0.0).then(|| Differs {
                trace: machine.trace.clone(),
                figure: figure.name,
                unit: figure.unit,
                value,
                median: spread.p50,
                distance,
                why: String::new(),
            })
        };
        let all = FIGURES.iter().zip(quantiles).filter_map(far);
        let farthest = all.max_by(|one, other| one.distance.total_cmp(&other.distance))?;
        let Differs { figure, unit, value, median, .. } = &farthest;
        let (most, share) = (&figures.arms_most, figures.arms_most_percent);
        let about = FIGURES.iter().find(|it| it.name == *figure).map_or("", |it| it.about);
        let why = format!(
            "{about}: {value:.1} {unit}, and {median:.1} for the median machine; {most} arms \
             {share:.0} % of its timers"
        );
        Some(Differs { why, ..farthest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Machines with equal figures are not listed as differing. A trace that cannot be used does
    /// not influence the quantiles.
    #[test]
    fn the_machine_that_differs_most_is_first_with_its_figure() {
        let machine = |number: u32| {
            let writes = if number == 7 { 900.0 } else { 100.0 + f64::from(number % 5) };
            let armed = if number == 9 { 2000.0 } else { 1000.0 + 20.0 * f64::from(number % 7) };
            let figures = Figures {
                cpus: 2,
                seconds: 1.0,
                device_writes_per_cpu_s: writes,
                wakeups_per_cpu_s: 100.0,
                armed_per_cpu_s: armed,
                cancelled_percent: 50.0,
                arms_most: "hrtimer_wakeup".to_string(),
                arms_most_percent: 60.0,
                ..Figures::default()
            };
            Machine {
                trace: number.to_string(),
                figures: Some(figures),
                error: None,
                notes: vec![],
            }
        };
        let mut machines: Vec<Machine> = (0..40).map(machine).collect();
        machines.push(Machine::failed("cut".to_string(), "cut off".to_string()));
        let fleet = Fleet::of(machines);
        let writes = &fleet.quantiles[0];
        assert_eq!((writes.figure, writes.p50), ("device_writes_per_cpu_s", 102.0));
        assert_eq!((fleet.differ.len(), fleet.failed()), (10, 1));
        let first: Vec<_> = fleet.differ[..2].iter().map(|it| (&*it.trace, it.figure)).collect();
        assert_eq!(first, [("7", "device_writes_per_cpu_s"), ("9", "armed_per_cpu_s")]);
        let why = &fleet.differ[0].why;
        assert!(why.contains("900.0 writes/s, and 102.0 for the median machine"), "{why}");
        assert!(why.contains("hrtimer_wakeup arms 60 %"), "{why}");
        assert!(Fleet::of((0..20).map(|_| machine(0)).collect()).differ.is_empty());
        assert_eq!(Fleet::of(Vec::new()), Fleet::default());
    }

    /// Goal: no figure of a machine is negative, and no percentage is above 100, whatever a policy
    /// costs there.
    #[test]
    fn figures_are_rates_and_shares() {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")];
        folders.push(folders[0].join("kernels"));
        let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let paths = files.map(|file| file.unwrap().path());
        let traces = paths.filter(|path| path.extension().is_some_and(|end| end == "gz"));
        let mut seen = 0;
        for machine in traces.map(|path| Machine::read(&path)) {
            let Some(figures) = machine.figures else { continue };
            seen += 1;
            for figure in FIGURES {
                let value = (figure.of)(&figures);
                let most = if figure.unit == "%" { 100.0 } else { f64::MAX };
                assert!(
                    (0.0..=most).contains(&value),
                    "{}: {} {value}",
                    machine.trace,
                    figure.name
                );
            }
        }
        assert!(seen > 5, "{seen}");
    }
}
