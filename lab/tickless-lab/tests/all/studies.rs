//! The studies' cells: what comes out, and that it comes out again.

use tickless_core::bases::Scan;
use tickless_core::phase::Phase;
use tickless_lab::studies::cancel::model::{self as cancel, Caches, Case};
use tickless_lab::studies::clock::model::{self as clock, Source, Ticks};
use tickless_lab::studies::deferred::model as deferred;
use tickless_lab::studies::phase::model as phase;
use tickless_lab::studies::rearm::model::{self as rearm, Others};
use tickless_lab::studies::{Cell, Role, schedule, sensitivity};
use tickless_machine::machines;
use tickless_machine::size::sized;
use tickless_machine::spec::Spec;
use tickless_trace::replay::ReplayPolicy;

fn spec(name: &str) -> Spec {
    machines::named(name).unwrap().unwrap()
}

fn cell<'a>(cells: &'a [Cell], id: &str) -> &'a Cell {
    cells.iter().find(|cell| cell.id == id).unwrap()
}

/// Goal: what a parameter was set from comes out, to 1 %.
fn calibrated_cells_come_out(cells: &[Cell]) {
    for cell in cells.iter().filter(|cell| cell.role == Role::Calibrated) {
        let published = cell.published.unwrap();
        let off = (cell.value / published - 1.0).abs();
        assert!(off < 0.01, "{}: {} for {published}", cell.id, cell.value);
    }
}

/// Goal: the cancel study. Calibrated cells come out; looking at one base costs the same whatever
/// their number, looking at all grows with it.
#[test]
fn cancel_looks_at_one_base() {
    let (big, small) = (spec("itanium2-32p"), spec("itanium2-4p"));
    calibrated_cells_come_out(&cancel::cells(&big, &small, cancel::SIDES, Caches::Cold).unwrap());
    let curve = cancel::curve(&big, &[2, 8, 64]).unwrap();
    let value = |id: &str| cell(&curve, id).value;
    assert_eq!(value("2p.after.warm"), value("64p.after.warm"));
    let per_base = (value("64p.before.warm") - value("8p.before.warm")) / 56.0;
    let far = big.value("line.far_ns") * big.value("line.load_share") * big.value("cpu.ghz");
    assert!((0.8..1.2).contains(&(per_base / far)), "{per_base} cycles a base, {far} a transfer");
}

fn ticks(cells: &[Cell]) -> Vec<&str> {
    let with_tick = cells.iter().filter(|cell| cell.inside == Some(true));
    with_tick.map(|cell| cell.id.as_str()).collect()
}

/// Goal: no cell keeps its tick if its mechanism does nothing, and implied ones never have one.
/// Each list is of the ticks that there are, so that the rest is not about nothing.
#[test]
fn broken_mechanisms_lose_their_ticks() {
    let check = |name: &str, whole: Vec<Cell>, broken: &[Vec<Cell>], expected: &[&str]| {
        assert_eq!(ticks(&whole), expected, "{name}");
        for id in expected {
            let lost = broken.iter().any(|cells| cell(cells, id).inside != Some(true));
            assert!(lost, "{name}: {id} keeps its tick whatever is broken");
        }
        for cell in whole.iter().filter(|cell| cell.inside == Some(true)) {
            assert_eq!(cell.role, Role::Predicted, "{} proves nothing", cell.id);
        }
    };
    let (big, small) = (spec("itanium2-32p"), spec("itanium2-4p"));
    let cancels = |sides, cold| cancel::cells(&big, &small, sides, cold).unwrap();
    let broken =
        [cancels(cancel::SIDES.broken(), Caches::Cold), cancels(cancel::SIDES, Caches::Warm)];
    let expected = ["32p.after.cold", "4p.before.warm", "4p.before.cold"];
    check("cancel", cancels(cancel::SIDES, Caches::Cold), &broken, &expected);
    let cells = |sides| rearm::cells(&spec("x5675-2s"), sides).unwrap();
    let expected = [
        "eager.us_per_round_trip",
        "eager.device_writes_per_round_trip",
        "eager.task_us_per_round_trip",
    ];
    check("rearm", cells(rearm::SIDES), &[cells(rearm::SIDES.broken())], &expected);
    let cells = |sides| clock::cells(&spec("haswell-ex-4s"), sides).unwrap();
    let expected = ["72.combined.jobs_per_min", "72.combined.read_percent"];
    check("clock", cells(clock::SIDES), &[cells(clock::SIDES.broken())], &expected);
    let cells = |sides| deferred::cells(&spec("atom-e3825"), sides).unwrap();
    let expected = ["250hz.contrast.seeds"];
    check("deferred", cells(deferred::SIDES), &[cells(deferred::SIDES.broken())], &expected);
    let cells = |sides| phase::second_source(&spec("power10-later"), sides).unwrap();
    let expected = ["later.apart.watts", "later.apart.joules"];
    check("phase", cells(phase::SIDES), &[cells(phase::SIDES.broken())], &expected);
}

/// Goal: the clock study. The order of the three sources on both machines.
#[test]
fn one_reader_reads_for_all() {
    for (name, cpus) in [("haswell-ex-4s", 72), ("ivybridge-ex-16s", 480)] {
        let cells = clock::cells(&spec(name), clock::SIDES).unwrap();
        calibrated_cells_come_out(&cells);
        let value = |id: &str| cell(&cells, &format!("{cpus}.{id}")).value;
        assert!(value("tsc.jobs_per_min") > value("combined.jobs_per_min"));
        assert!(value("combined.jobs_per_min") > value("hpet.jobs_per_min"));
        assert!(value("combined.read_p999") < value("hpet.read_p999"));
        assert!(value("combined.device_reads_per_read") < 0.1);
        assert!(value("hpet.skewed.read_percent") < value("hpet.read_percent") / 10.0);
    }
}

/// Goal: additions of Linux 7.1. A lazy slice saves nearly all writes that follow it and costs
/// events for nothing; no task sleeps for ever where handlers defer programming, all messages
/// arrive, and two runs are identical.
#[test]
fn lazy_slices_save_writes() {
    let small = sized(&spec("haswell-ex-4s"), 4);
    let load = schedule::Load::new(&small, 250, 300);
    let run = |policy: &ReplayPolicy| schedule::run(&small, load, *policy).unwrap();
    let runs: Vec<schedule::Outcome> = schedule::POLICIES.iter().map(run).collect();
    let [_, aware, slices, _, both] = runs[..] else { panic!("{} policies", runs.len()) };
    for one in &runs {
        assert!(one.ms > 1.0 && one.switches > 500, "{one:?}");
    }
    assert!(aware.device.writes > 10 * slices.device.writes, "{aware:?} {slices:?}");
    assert!(aware.device.writes > 10 * both.device.writes);
    assert!(slices.device.spurious >= aware.device.spurious);
    assert_eq!(run(&ReplayPolicy::Linux71), both);
}

/// Goal: two runs are identical to the last event; combining loses where the device is cheap and
/// serves all readers at once; each direct read of the clock is one of the device.
#[test]
fn clock_runs_repeat_and_combining_can_lose() {
    let spec = spec("haswell-ex-4s");
    let run = |spec: &Spec, source| clock::run(spec, source, Ticks::Aligned).unwrap();
    for source in [Source::Tsc, Source::Direct, Source::Combined] {
        assert_eq!(run(&spec, source), run(&spec, source));
    }
    let cheap = spec.with("counter.service_ns", 0.0).with("counter.latency_ns", 30.0);
    let (direct, combined) = (run(&cheap, Source::Direct), run(&cheap, Source::Combined));
    assert!(combined.read_ns > 2.0 * direct.read_ns, "{} {}", combined.read_ns, direct.read_ns);
    assert!((1.0..1.01).contains(&direct.device_reads), "{}", direct.device_reads);
}

/// Goal: a sweep goes over every assumed number, and finds out which of them a cell hangs on.
#[test]
fn sensitivity_names_what_matters() {
    let spec = spec("itanium2-4p");
    let case = Case { calls: 50, ..Case::new(Scan::AllBases) };
    let study = |spec: &Spec| {
        let cycles = cancel::cycles(spec, case, 1).unwrap();
        vec![Cell::predicted("4p.before.warm", "cycles/call", cycles)]
    };
    let found = sensitivity(&spec, Spec::clone, study);
    assert_eq!(found[0].key, "line.node_ns");
    assert!(found[0].at_low < found[0].value && found[0].value < found[0].at_high);
    assert!(found.iter().any(|one| one.key == "irq.entry_ns" && one.moves() < 0.2));
}

/// Goal: a number that a fitted one makes up for moves nothing once that is fitted again.
#[test]
fn sensitivity_fits_again() {
    // With this much work in a pipe call, less of it makes up for the dearest system call.
    let spec = spec("x5675-2s").with("workload.pipe_ns", 400.0);
    let study = |spec: &Spec| {
        let us = rearm::run(spec, ReplayPolicy::Lazy, Others::Watchdog, 500).unwrap().us;
        vec![Cell::predicted("lazy", "us", us)]
    };
    let wanted = study(&spec)[0].value;
    let moves = |found: Vec<tickless_lab::studies::Sensitivity>| {
        found.iter().find(|one| one.key == "os.syscall_ns").unwrap().moves()
    };
    let as_it_is = moves(sensitivity(&spec, Spec::clone, study));
    let refit = |spec: &Spec| {
        let lazy = |spec: &Spec| Ok(study(spec)[0].value);
        tickless_lab::studies::fitted(spec, "workload.pipe_ns", wanted, lazy).unwrap()
    };
    let again = moves(sensitivity(&spec, refit, study));
    assert!(as_it_is > 0.05 && again < 0.01, "{as_it_is}, fitted again {again}");
}

/// Goal: the rearm study. The counts of device writes come out of the library's own code: none when
/// removals do not program, eight per round trip when they do.
#[test]
fn eager_removal_writes_eight_times_a_round_trip() {
    let spec = spec("x5675-2s");
    let cells = rearm::cells(&spec, rearm::SIDES).unwrap();
    calibrated_cells_come_out(&cells);
    let value = |id: &str| cell(&cells, id).value;
    assert!(value("lazy.device_writes_per_round_trip") < 0.05);
    assert!((value("eager.device_writes_per_round_trip") - 8.0).abs() < 0.1);
    // Leaving idle cancels the tick, which is not lazy: three writes on each CPU.
    assert!((value("linux_7_2.device_writes_per_round_trip") - 6.0).abs() < 0.1);
    assert!(value("lazy.spurious_wakeups_per_s") > value("eager.spurious_wakeups_per_s"));
    let run = || rearm::run(&spec, ReplayPolicy::Eager, Others::Watchdog, 500).unwrap();
    assert_eq!(run(), run(), "two runs are identical");
}

/// Goal: the phase study. The farther apart the groups, the faster, at less energy and more power.
#[test]
fn groups_apart_are_faster() {
    let spec = spec("power10-core");
    let cells = phase::cells(&spec).unwrap();
    calibrated_cells_come_out(&cells);
    let value = |id: &str| cell(&cells, id).value;
    let mut last = value("together.aligned.seconds");
    for offset in [10, 20, 30, 40, 50] {
        let seconds = value(&format!("together.{offset}ms.seconds"));
        // With overlap f, T = T1 / (1 - f (1 - r)).
        let overlap = 1.0 - f64::from(offset) / 50.0;
        let rate = 120.0 / 155.0;
        let expected = 120.0 / (1.0 - overlap * (1.0 - rate));
        assert!(seconds < last && (seconds / expected - 1.0).abs() < 0.01, "{seconds} {expected}");
        last = seconds;
    }
    assert!(value("together.50ms.joules") < value("together.aligned.joules"));
    assert!(value("together.50ms.watts") > value("together.aligned.watts"));
    let later = phase::second_source(&self::spec("power10-later"), phase::SIDES);
    calibrated_cells_come_out(&later.unwrap());
    let plans = phase::pair(Phase::Spread);
    assert_eq!(phase::run(&spec, &plans).unwrap(), phase::run(&spec, &plans).unwrap());
}

/// Goal: the deferred study. Expiry threads are woken for what expires and not by every tick.
#[test]
fn expiry_threads_are_woken_when_something_expired() {
    let spec = spec("atom-e3825");
    let cells = deferred::cells(&spec, deferred::SIDES).unwrap();
    for hz in [1_000, 250] {
        let value = |id: &str| cell(&cells, &format!("{hz}hz.unbound.{id}")).value;
        let (before, after) = (value("before.wakes_per_s"), value("after.wakes_per_s"));
        assert!((before / f64::from(hz) - 1.0).abs() < 0.02, "{before} wakes at {hz} Hz");
        assert!((40.0..60.0).contains(&after), "{after}: one expiry in 20 ms");
    }
}
