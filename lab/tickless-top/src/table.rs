//! Tables of what was counted between two times: sorted rows with rates.

use crate::snapshot::{Counts, Family, Process, Row, Snapshot};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    #[default]
    Process,
    Callback,
}

/// The column by which rows are sorted, by its heading: names alphabetically, all else from the
/// largest.
/// The program's help prints the variants' descriptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Sort {
    /// Idle CPUs woken
    #[default]
    Wakes,
    /// Writes of timer devices
    Writes,
    /// Timers armed
    Armed,
    /// Armings of pending timers
    Again,
    /// The share of armed timers that were cancelled
    Gone,
    /// Timers that expired
    Fired,
    /// How far ahead timers are armed
    Ahead,
    /// CPU time
    Cpu,
    /// How often a thread left its CPU
    Switch,
    /// The process's name
    Process,
}

/// The counts between two times. Serialises to the JSON of `tickless top`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    pub seconds: f64,
    pub timer_events: u64,
    pub refused: u64,
    pub missed: u64,
    pub unseen_percent: f64,
    pub unseen_after: String,
    pub own_percent: f64,
    pub kernel_percent: Option<f64>,
    pub is_partial: bool,
    pub rows: Vec<TableRow>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct TableRow {
    pub process: String,
    pub pid: u32,
    pub function: Option<String>,
    pub family: Family,
    pub arms: u64,
    pub rearms: u64,
    pub cancels: u64,
    pub expiries: u64,
    pub unseen: u64,
    pub wakes: Option<u64>,
    pub device_writes: Option<u64>,
    pub cancelled_percent: Option<f64>,
    pub distance_ns: Option<u64>,
    pub periods: Vec<Period>,
    pub main_function: String,
    /// The CPU time of the process; `None` in rows of callbacks.
    pub cpu_ns: Option<u64>,
    /// How often a thread of the process left its CPU; `None` in rows of callbacks.
    pub switches: Option<u64>,
    /// The command line; `None` for the kernel, and for a process that has ended.
    pub command: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Period {
    pub period_ns: u64,
    pub timers: u64,
    /// How many of `timers` expire at most a hundredth of the period apart from another timer of
    /// the same callback and period. That timer can belong to a different process.
    pub meeting: u64,
    /// The processes of those other timers.
    pub with: BTreeSet<String>,
}

/// What identifies a row: the process and, if rows are callbacks, the callback and its timer's
/// kind.
type RowKey = (u32, Option<(String, Family)>);

/// Returns what was counted between two snapshots; `after` is the later one.
pub fn between(before: &Snapshot, after: &Snapshot, by: By) -> Table {
    let seconds = after.at.since(before.at).0 as f64 / 1e9;
    let percent = |ns: u64| if seconds > 0.0 { ns as f64 / 1e7 / seconds } else { 0.0 };
    let ran = ran(before, after);
    let mut groups: BTreeMap<RowKey, Group> = BTreeMap::new();
    let mut places: HashMap<usize, RowKey> = HashMap::new();
    for (at, row) in after.rows.iter().enumerate() {
        let counts = match before.rows.get(at) {
            Some(before) => row.counts.since(&before.counts),
            None => row.counts,
        };
        let callback = (by == By::Callback).then(|| (row.function.clone(), row.family));
        let place = (row.pid, callback);
        places.insert(at, place.clone());
        if counts.arms + counts.cancels + counts.expiries == 0 {
            continue;
        }
        let group = groups.entry(place).or_insert_with(|| Group::of(&row.process, row.family));
        group.add(&counts, row.family, &row.function);
    }
    if by == By::Process {
        for (&pid, Process { name, .. }) in &ran {
            groups.entry((pid, None)).or_insert_with(|| Group::of(name, Family::None));
        }
    }
    let mut periods = periods(before, after, &places);
    let mut timer_events = 0;
    let rows = groups.into_iter().map(|(place, group)| {
        let found = periods.remove(&place).unwrap_or_default();
        timer_events += group.counts.arms + group.counts.cancelled() + group.counts.expiries;
        // The time of the kernel itself is not counted, and that of a callback cannot be told.
        let is_counted = by == By::Process && place.0 > 0;
        let ran = is_counted.then(|| ran.get(&place.0).cloned().unwrap_or_default());
        group.row(place, found, after, ran)
    });
    let rows: Vec<TableRow> = rows.collect();
    Table {
        seconds,
        timer_events,
        refused: after.refused,
        missed: after.missed.saturating_sub(before.missed),
        unseen_percent: percent(after.unseen_ns.saturating_sub(before.unseen_ns)),
        unseen_after: after.unseen_after.clone(),
        own_percent: percent(after.own_ns.saturating_sub(before.own_ns)),
        kernel_percent: after.kernel_ns.map(|ns| {
            // Subtract 0 if the first snapshot has no estimate: no eBPF program had run until then.
            percent(ns.saturating_sub(before.kernel_ns.unwrap_or(0)))
        }),
        is_partial: false,
        rows,
    }
}

/// Returns the processes that ran between two snapshots, with how much.
fn ran(before: &Snapshot, after: &Snapshot) -> BTreeMap<u32, Process> {
    let since = |(pid, after): (&u32, &Process)| {
        let before = before.processes.get(pid).map_or((0, 0), |it| (it.cpu_ns, it.switches));
        let (cpu_ns, switches) =
            (after.cpu_ns.saturating_sub(before.0), after.switches.saturating_sub(before.1));
        (cpu_ns > 0).then(|| (*pid, Process { name: after.name.clone(), cpu_ns, switches }))
    };
    after.processes.iter().filter_map(since).collect()
}

struct Group {
    process: String,
    family: Family,
    counts: Counts,
    main: (u64, String),
}

impl Group {
    fn of(process: &str, family: Family) -> Group {
        let counts = Counts::default();
        Group { process: process.to_string(), family, counts, main: (0, String::new()) }
    }

    /// Adds counts. The function with the most operations becomes the main one.
    fn add(&mut self, counts: &Counts, family: Family, function: &str) {
        self.counts = self.counts.plus(counts);
        if self.family != family {
            self.family = Family::Both;
        }
        let weight = counts.arms + counts.expiries;
        if weight > self.main.0 || self.main.1.is_empty() {
            self.main = (weight, function.to_string());
        }
    }

    fn row(
        self,
        (pid, callback): RowKey,
        periods: Vec<Period>,
        seen: &Snapshot,
        ran: Option<Process>,
    ) -> TableRow {
        let Group { process, family, counts, main } = self;
        let share = |part: u64| (counts.arms > 0).then(|| part as f64 * 1e2 / counts.arms as f64);
        TableRow {
            process,
            pid,
            function: callback.map(|(function, _)| function),
            family,
            arms: counts.arms,
            rearms: counts.rearms,
            cancels: counts.cancelled(),
            expiries: counts.expiries,
            unseen: counts.unseen,
            wakes: seen.sees_wakeups.then_some(counts.idle_wakeups),
            device_writes: seen.sees_device_writes.then_some(counts.device_writes),
            cancelled_percent: share(counts.cancelled()),
            distance_ns: counts.distances.typical_ns(),
            periods,
            main_function: main.1,
            cpu_ns: ran.as_ref().map(|ran| ran.cpu_ns),
            switches: ran.map(|ran| ran.switches),
            command: None,
        }
    }
}

/// Returns, for each row, the periods of its timers and how many of these expire nearly together
/// with another one.
fn periods(
    before: &Snapshot,
    after: &Snapshot,
    places: &HashMap<usize, RowKey>,
) -> HashMap<RowKey, Vec<Period>> {
    // For each callback, what expired in the interval: (period, last deadline, index of the row).
    let mut of_function: HashMap<&str, Vec<(u64, u64, usize)>> = HashMap::new();
    for (at, source) in after.sources.iter().enumerate() {
        let last = before.sources.get(at).map_or(0, |source| source.vote.last);
        let (Some(period), Some(row)) = (source.vote.period(), after.rows.get(source.row)) else {
            continue;
        };
        if last != source.vote.last {
            let found = of_function.entry(&row.function).or_default();
            found.push((period, source.vote.last, source.row));
        }
    }
    let mut found: HashMap<RowKey, Vec<Period>> = HashMap::new();
    for mut sources in of_function.into_values() {
        sources.sort_unstable();
        for alike in sources.chunk_by(|(one, ..), (next, ..)| next - one <= one >> 6) {
            let Some(&(period_ns, ..)) = alike.first() else { continue };
            let meeting = meeting(alike, period_ns);
            for (at, (_, _, row)) in alike.iter().enumerate() {
                let Some(place) = places.get(row) else { continue };
                let periods = found.entry(place.clone()).or_default();
                if periods.last().is_none_or(|last| last.period_ns != period_ns) {
                    let with = BTreeSet::new();
                    periods.push(Period { period_ns, timers: 0, meeting: 0, with });
                }
                let Some(period) = periods.last_mut() else { continue };
                period.timers += 1;
                period.meeting += u64::from(meeting.contains_key(&at));
                let partners = meeting.get(&at).into_iter().flatten();
                period.with.extend(partners.map(|&partner| {
                    let Row { process, pid, .. } = &after.rows[alike[partner].2];
                    if *pid == 0 { process.clone() } else { format!("{process} ({pid})") }
                }));
            }
        }
    }
    for periods in found.values_mut() {
        periods.sort_by_key(|period| (Reverse(period.timers), period.period_ns));
    }
    found
}

/// Returns the indices of the timers in `alike` that expire at most a hundredth of the period apart
/// from another one, with the indices of the others. Compares their deadlines modulo the period.
fn meeting(alike: &[(u64, u64, usize)], period: u64) -> HashMap<usize, Vec<usize>> {
    let within = period / 100;
    let mut phases: Vec<(u64, usize)> =
        alike.iter().enumerate().map(|(at, (_, last, _))| (last % period.max(1), at)).collect();
    phases.sort_unstable();
    let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
    if phases.len() < 2 {
        return found;
    }
    for at in 0..phases.len() {
        let ((phase, one), (next, other)) = (phases[at], phases[(at + 1) % phases.len()]);
        if (next + period - phase) % period.max(1) <= within {
            found.entry(one).or_default().push(other);
            found.entry(other).or_default().push(one);
        }
    }
    found
}

impl Table {
    /// Sorts the rows. Rows with equal values are sorted by process number, then by callback.
    pub fn sort(&mut self, by: Sort) {
        self.rows.sort_by(|a, b| (a.pid, &a.function).cmp(&(b.pid, &b.function)));
        if by == Sort::Process {
            self.rows.sort_by(|a, b| a.process.cmp(&b.process));
            return;
        }
        self.rows.sort_by_key(|row| {
            // If the kernel shows neither wakeups nor writes, rows have 0: armings decide.
            let first = match by {
                Sort::Wakes => row.wakes.unwrap_or(0),
                Sort::Writes => row.device_writes.unwrap_or(0),
                Sort::Again => row.rearms,
                // The share in millionths. Rows without armings come last.
                Sort::Gone => row.cancelled_percent.map_or(0, |share| 1 + (share * 1e4) as u64),
                Sort::Fired => row.expiries,
                Sort::Ahead => row.distance_ns.unwrap_or(0),
                Sort::Cpu => row.cpu_ns.unwrap_or(0),
                Sort::Switch => row.switches.unwrap_or(0),
                Sort::Armed | Sort::Process => row.arms,
            };
            Reverse((first, row.arms))
        });
    }

    /// Returns the sums of all rows.
    pub fn total(&self) -> TableRow {
        let sum = |of: fn(&TableRow) -> u64| self.rows.iter().map(of).sum::<u64>();
        let known = |of: fn(&TableRow) -> Option<u64>| {
            self.rows.iter().filter_map(of).reduce(|one, other| one + other)
        };
        let (arms, cancels) = (sum(|row| row.arms), sum(|row| row.cancels));
        TableRow {
            process: "total".to_string(),
            arms,
            rearms: sum(|row| row.rearms),
            cancels,
            expiries: sum(|row| row.expiries),
            unseen: sum(|row| row.unseen),
            wakes: self.rows.iter().map(|row| row.wakes).sum(),
            device_writes: self.rows.iter().map(|row| row.device_writes).sum(),
            cancelled_percent: (arms > 0).then(|| cancels as f64 * 1e2 / arms as f64),
            cpu_ns: known(|row| row.cpu_ns),
            switches: known(|row| row.switches),
            ..TableRow::default()
        }
    }

    /// Keeps the rows whose process name or callback contains `text`, and those of the process
    /// whose number is `text`.
    pub fn filter(&mut self, text: &str) {
        let has = |name: &str| name.contains(text);
        self.rows.retain(|row| {
            has(&row.process)
                || row.pid.to_string() == text
                || row.function.as_deref().is_some_and(has)
                || has(&row.main_function)
        });
    }

    pub fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }
}
