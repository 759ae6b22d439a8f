//! `tickless study`, run as a user runs it.

use crate::live::{interrupted, skip, wait_until};
use crate::run::{PROGRAM, keys_named_on, stderr, stdout, tickless};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tickless_lab::studies::STUDIES;

fn study(args: &[&str]) -> Output {
    tickless(&[&["study"], args].concat())
}

/// Runs one live study at a time, because each measures.
fn live_study(args: &[&str]) -> Output {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    study(args)
}

/// The output of a quick run. Each is run once, by the first test that needs it.
pub fn quick(name: &'static str, world: &'static str, format: &'static str) -> String {
    static DONE: Mutex<BTreeMap<[&str; 3], Arc<OnceLock<String>>>> = Mutex::new(BTreeMap::new());
    let run = || {
        let args = [name, world, "--quick", "--seed", "7", "--format", format];
        let output = if world == "--live" { live_study(&args) } else { study(&args) };
        assert_eq!(output.status.code(), Some(0), "{name} {world}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{name}: a bar where there is no terminal");
        stdout(&output)
    };
    // A test that needs another run does not wait for this one.
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let one = Arc::clone(done.entry([name, world, format]).or_default());
    drop(done);
    one.get_or_init(run).clone()
}

/// A figure of a study.
fn cell<'a>(study: &'a Value, id: &str) -> &'a Value {
    let mut cells = study["cells"].as_array().unwrap().iter();
    cells.find(|cell| cell["id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

/// Each study in both worlds.
fn studies() -> impl Iterator<Item = (&'static str, &'static str)> {
    STUDIES.iter().flat_map(|study| [(study.name, "--live"), (study.name, "--sim")])
}

/// Its labels are consistent: a live figure is of the live world, a figure that is inside lies in
/// its band, and a range holds its value.
#[test]
fn json_has_the_documented_shape() {
    for (name, world) in studies() {
        let json: Value = serde_json::from_str(&quick(name, world, "json")).unwrap();
        keys_named_on("studies", &json);
        assert_eq!((&json["study"], &json["seed"]), (&name.into(), &7.into()));
        assert_eq!(json["world"], world.trim_start_matches('-'));
        let cells = json["cells"].as_array().unwrap();
        let ids: BTreeSet<&str> = cells.iter().map(|cell| cell["id"].as_str().unwrap()).collect();
        assert!(!cells.is_empty() && ids.len() == cells.len(), "{name}: an id twice: {ids:?}");
        for cell in cells {
            keys_named_on("studies", cell);
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
}

/// They name every cell and its origin.
#[test]
fn tables_fit_a_terminal() {
    for (name, world) in studies() {
        let text = quick(name, world, "table");
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && !line.ends_with(' '), "{name}: {line:?}");
        }
        assert!(text.starts_with(&format!("Study {name}, {}: ", &world[2..])), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("low - high"), "{text}");
        let role = if world == "--live" { "Live (" } else { "Predicted (" };
        assert!(text.contains(role), "{text}");
    }
}

#[test]
fn help_names_every_study() {
    let help = stdout(&study(&["--help"]));
    // Long lines are broken.
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for study in STUDIES {
        assert!(words.contains(&format!("{}: {}", study.name, study.about)), "{help}");
    }
}

/// As a program sees it: device writes per round trip.
#[test]
fn lazy_rearming_saves_device_writes() {
    let json: Value = serde_json::from_str(&quick("rearm", "--live", "json")).unwrap();
    let cell = |id: &str| cell(&json, id);
    assert_eq!(cell("lazy.device_writes_per_round_trip")["inside"], true);
    assert_eq!(cell("eager.device_writes_per_round_trip")["inside"], true);
    assert!(cell("eager.device_writes_per_round_trip")["value"].as_f64() >= Some(2.0));
    let gap = cell("gap.eager_over_lazy");
    assert!(gap["low"].as_f64() < gap["high"].as_f64(), "a gap without its spread: {gap}");
}

/// `--cpus` chooses the points of the curve.
#[test]
fn csv_has_a_line_for_each_cell() {
    let args = ["cancel", "--live", "--quick", "--cpus", "9,3", "--format", "csv"];
    let text = stdout(&live_study(&args));
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = csv.headers().unwrap().iter().map(str::to_string).collect();
    assert_eq!(header[..5], ["study", "world", "machine", "seed", "id"]);
    let rows: Vec<csv::StringRecord> = csv.records().collect::<Result<_, _>>().unwrap();
    assert!(rows.len() > 20 && rows.iter().all(|row| row.len() == header.len()), "{text}");
    assert!(rows.iter().all(|row| &row[0] == "cancel" && row[9].parse::<f64>().is_ok()), "{text}");
    let has = |id: &str| rows.iter().any(|row| row[4].starts_with(id));
    assert!(has("9.after.cold_ns") && has("3.") && !has("512."), "{text}");
}

/// As a program sees it (D3: the expiry thread wakes only for work).
#[test]
fn deferred_expiry_wakes_at_most_a_tenth() {
    let json: Value = serde_json::from_str(&quick("deferred", "--live", "json")).unwrap();
    let value = |id: &str| cell(&json, id)["value"].as_f64().unwrap();
    // Half of what an idle machine shows: tests run beside each other.
    assert!(value("1000hz.idle.fewer_wakes") > 5.0);
    assert!(value("1000hz.idle.before.empty_wakes_per_s") > 100.0);
    assert!(value("1000hz.idle.after.empty_wakes_per_s") < 10.0);
    assert_eq!(value("1000hz.idle.tickless.ticks_per_s"), 0.0);
}

#[test]
fn an_interrupt_ends_a_study_without_results() {
    let study = ["study", "rearm", "--live", "--full", "--format", "json"];
    let output = interrupted(Command::new(PROGRAM).args(study));
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!((stdout(&output), stderr(&output)), (String::new(), String::new()));
}

/// The groups of a killed run are removed by the next run.
#[test]
fn an_interrupt_removes_the_control_groups() {
    const TEST: &str = "an_interrupt_removes_the_control_groups";
    const CONTROLLER: &str = "/sys/fs/cgroup/cpu";
    let groups = |of: String| {
        let entries = std::fs::read_dir(CONTROLLER).into_iter().flatten().flatten();
        let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.any(|name| name.starts_with(&format!("tickless-study-{of}-")))
    };
    // Larger than any process number can be.
    let killed = format!("{CONTROLLER}/tickless-study-4294967295-0");
    if let Err(error) = std::fs::create_dir_all(&killed) {
        return skip(TEST, format!("no groups can be made at {CONTROLLER}: {error}"));
    }
    let mut child = Command::new(PROGRAM)
        .args(["study", "phase", "--live", "--full"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    wait_until("it has made a group", || groups(id.clone()));
    assert!(!std::path::Path::new(&killed).exists());
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!groups(id));
}

/// Before, it takes longer with every base; after, it does not.
#[test]
fn a_waiting_cancel_does_not_grow_with_the_bases() {
    let json: Value = serde_json::from_str(&quick("cancel", "--live", "json")).unwrap();
    let value = |id: &str| cell(&json, id)["value"].as_f64().unwrap();
    let before = value("512.before.idle_ns") / value("2.before.idle_ns");
    let after = value("512.after.idle_ns") / value("2.after.idle_ns");
    assert!(before > 8.0 && after < before / 3.0, "grows {before} times, and {after} after");
    let many = study(&["cancel", "--live", "--cpus", "3000"]);
    assert_eq!(many.status.code(), Some(2));
    assert!(stderr(&many).contains("2048"), "{}", stderr(&many));
}

/// Without them, the refills are together.
#[test]
fn spread_phases_are_half_a_period_apart() {
    let json: Value = serde_json::from_str(&quick("phase", "--live", "json")).unwrap();
    let value = |id: &str| cell(&json, id)["value"].as_f64().unwrap();
    assert_eq!((value("aligned.apart"), value("spread.apart")), (0.0, 50.0));
    for way in ["aligned", "spread", "random"] {
        assert!((0.0..=1.0).contains(&value(&format!("{way}.overlap"))));
        assert!(value(&format!("{way}.completion")) > 0.1, "two refills away");
    }
    let kernels = ["kernel_near.apart", "not with the kernel's own cgroups"];
    assert!(kernels.iter().any(|word| json.to_string().contains(word)), "either, or why not");
}
