//! `tickless study`, run as a user runs it.

use crate::live::{skip, wait_until};
use crate::run::{Ended, fits, interrupted, json, prints, program, signal, tickless};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tickless_lab::studies::STUDIES;

/// Runs one live study at a time, because each measures.
fn live_study(line: &str) -> Ended {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    tickless(line)
}

/// The output of a quick run. Each is run once, by the first test that needs it.
pub fn quick(name: &'static str, world: &'static str, format: &'static str) -> String {
    static DONE: Mutex<BTreeMap<[&str; 3], Arc<OnceLock<String>>>> = Mutex::new(BTreeMap::new());
    let run = || {
        let line = format!("study {name} {world} --quick --seed 7 --format {format}");
        let ended = if world == "--live" { live_study(&line) } else { tickless(&line) };
        assert_eq!(ended.err, "", "{name}: a bar where there is no terminal");
        ended.exits(0, &[]).out
    };
    // A test that needs another run does not wait for this one.
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let one = Arc::clone(done.entry([name, world, format]).or_default());
    drop(done);
    one.get_or_init(run).clone()
}

fn studies() -> impl Iterator<Item = (&'static str, &'static str)> {
    STUDIES.iter().flat_map(|study| [(study.name, "--live"), (study.name, "--sim")])
}

#[test]
fn the_labels_of_a_figure_are_consistent() {
    for (name, world) in studies() {
        let json: Value = serde_json::from_str(&quick(name, world, "json")).unwrap();
        assert_eq!((&json["study"], &json["seed"]), (&name.into(), &7.into()));
        assert_eq!(json["world"], world.trim_start_matches('-'));
        let cells = json["cells"].as_array().unwrap();
        let ids: BTreeSet<&str> = cells.iter().map(|cell| cell["id"].as_str().unwrap()).collect();
        assert!(!cells.is_empty() && ids.len() == cells.len(), "{name}: an id twice: {ids:?}");
        for cell in cells {
            assert_eq!(cell["role"] == "live", world == "--live", "{cell}");
            let [value, low, high] = ["value", "low", "high"].map(|key| cell[key].as_f64());
            assert!(value.is_some() && low <= value && value <= high, "{cell}");
            let [least, most] = [0, 1].map(|end| cell["band"][end].as_f64());
            let lies = |value: Option<f64>| {
                least.is_none_or(|least| value >= Some(least))
                    && most.is_none_or(|most| value <= Some(most))
            };
            let effect = cell["effect"].as_f64();
            match cell["inside"].as_bool() {
                Some(said) => assert_eq!(said, lies(effect.or(value)), "{cell}"),
                // There is nothing to fail: no band, or one that the null model is in as well.
                None if effect.is_some() && cell["role"] != "implied" => {
                    assert!(lies(cell["null_model"].as_f64()), "{cell}");
                }
                None => assert!(cell["band"].is_null() || cell["role"] == "implied", "{cell}"),
            }
        }
    }
    assert_eq!(json("study rearm --quick")["world"], "sim", "by default");
}

#[test]
fn tables_fit_a_terminal() {
    for (name, world) in studies() {
        let text = quick(name, world, "table");
        fits(text.lines());
        assert!(text.starts_with(&format!("Study {name}, {}: ", &world[2..])), "{text}");
        let role = if world == "--live" { "Live (" } else { "Predicted (" };
        assert!(text.contains(role), "{text}");
        // Figures whose names differ in the last word alone are a table of medians.
        let has_table = text.lines().any(|line| line.starts_with(" 1000hz.idle.after "));
        assert_eq!(has_table, name == "deferred" && world == "--live", "{text}");
    }
    // Long lines are broken.
    let help = prints("study --help").split_whitespace().collect::<Vec<_>>().join(" ");
    for study in STUDIES {
        assert!(help.contains(&format!("{}: {}", study.name, study.about)), "{help}");
    }
}

/// What the mechanisms save is seen live: the measured figures are within these bounds.
#[test]
fn live_figures_show_the_mechanisms() {
    let of = |name| -> Value { serde_json::from_str(&quick(name, "--live", "json")).unwrap() };
    let cell = |study: &Value, id: &str| {
        let mut cells = study["cells"].as_array().unwrap().iter();
        cells.find(|cell| cell["id"] == id).unwrap_or_else(|| panic!("no {id}")).clone()
    };
    for (name, id, least, most) in [
        // Not zero: on a busy machine the driver may check a deadline during the measurement.
        ("rearm", "lazy.device_writes_per_round_trip", 0.0, 0.02),
        ("rearm", "eager.device_writes_per_round_trip", 2.0, f64::MAX),
        // Half of what an idle machine shows: tests run beside each other.
        ("deferred", "1000hz.idle.fewer_wakes", 5.0, f64::MAX),
        ("deferred", "1000hz.idle.before.empty_wakes_per_s", 100.0, f64::MAX),
        ("deferred", "1000hz.idle.after.empty_wakes_per_s", 0.0, 10.0),
        ("deferred", "1000hz.idle.tickless.ticks_per_s", 0.0, 0.0),
        ("phase", "aligned.apart", 0.0, 0.0),
        ("phase", "spread.apart", 50.0, 50.0),
        ("phase", "aligned.overlap", 0.0, 1.0),
        ("phase", "spread.overlap", 0.0, 1.0),
        ("phase", "random.overlap", 0.0, 1.0),
        // Less would be two refills away.
        ("phase", "aligned.completion", 0.1, f64::MAX),
        ("phase", "spread.completion", 0.1, f64::MAX),
        ("phase", "random.completion", 0.1, f64::MAX),
    ] {
        let cell = cell(&of(name), id);
        assert!((least..=most).contains(&cell["value"].as_f64().unwrap()), "{name}: {cell}");
    }
    let rearm = of("rearm");
    let is_linux = |cell: &Value| cell["id"].as_str().unwrap().starts_with("linux_");
    let has_row = rearm["cells"].as_array().unwrap().iter().any(is_linux);
    let says_why = rearm["notes"].to_string().contains("no row for Linux 7.1 or later");
    assert!(has_row != says_why, "the kernel's own row, or why it is missing: {rearm}");
    let gap = cell(&rearm, "gap.eager_over_lazy");
    assert!(gap["low"].as_f64() < gap["high"].as_f64(), "a gap without its spread: {gap}");
    let cancel = of("cancel");
    let ns = |id: &str| cell(&cancel, id)["value"].as_f64().unwrap();
    let [before, after] = ["before", "after"]
        .map(|way| ns(&format!("512.{way}.idle_ns")) / ns(&format!("2.{way}.idle_ns")));
    assert!(before > 8.0 && after < before / 3.0, "grows {before} times, and {after} after");
    let kernels = ["kernel_near.apart", "not with the kernel's own cgroups"];
    assert!(kernels.iter().any(|word| of("phase").to_string().contains(word)), "or why not");
}

/// `--cpus` chooses the points of the curve.
#[test]
fn csv_has_a_line_for_each_cell() {
    let text = live_study("study cancel --live --quick --cpus 9,3 --format csv").out;
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = csv.headers().unwrap().iter().map(str::to_string).collect();
    assert_eq!(header[..5], ["study", "world", "machine", "seed", "id"]);
    let rows: Vec<csv::StringRecord> = csv.records().collect::<Result<_, _>>().unwrap();
    assert!(rows.len() > 20 && rows.iter().all(|row| row.len() == header.len()), "{text}");
    assert!(rows.iter().all(|row| &row[0] == "cancel" && row[9].parse::<f64>().is_ok()), "{text}");
    let has = |id: &str| rows.iter().any(|row| row[4].starts_with(id));
    assert!(has("9.after.cold_ns") && has("3.") && !has("512."), "{text}");
}

#[test]
fn an_interrupt_ends_a_study_without_results() {
    let ended = interrupted("study rearm --live --full --format json").exits(130, &[]);
    assert_eq!((ended.out, ended.err), (String::new(), String::new()));
}

/// The groups of a killed run are removed by the next run.
#[test]
fn an_interrupt_removes_the_control_groups() {
    const CONTROLLER: &str = "/sys/fs/cgroup/cpu";
    let groups = |of: u32| {
        let entries = std::fs::read_dir(CONTROLLER).into_iter().flatten().flatten();
        let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.any(|name| name.starts_with(&format!("tickless-study-{of}-")))
    };
    // Larger than any process number can be.
    let killed = format!("{CONTROLLER}/tickless-study-{}-0", u32::MAX);
    if let Err(error) = std::fs::create_dir_all(&killed) {
        return skip(format_args!("no groups can be made at {CONTROLLER}: {error}"));
    }
    let mut child = program("study phase --live --full").spawn().unwrap();
    wait_until("it has made a group", || groups(child.id()));
    assert!(!std::path::Path::new(&killed).exists());
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!groups(child.id()));
}
