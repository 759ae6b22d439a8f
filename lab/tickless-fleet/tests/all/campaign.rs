//! Campaign files that are almost valid.

use std::path::Path;
use tickless_fleet::campaign::{Cell, Plan};
use tickless_fleet::perform::simulate_on;
use tickless_machine::machines::named;
use tickless_trace::replay::ReplayPolicy;

const ALL_AXES: &str = r#"name = "all axes"

[simulate]
studies = ["rearm", "cancel", "phase"]
machines = ["x5675-2s", "itanium2-4p"]
cpus = "2,4,8"
policies = ["eager", "lazy", "restart-aware"]
hz = [100, 250, 1000]
seeds = "0-99,200"
"#;

const ENDLESS: &str = r#"[simulate]
studies = ["rearm"]
machines = ["x5675-2s"]
policies = ["eager", "lazy"]
hz = "1-100000"
seeds = "0-9999"
"#;

/// Returns whether the text is a campaign, which then has no cell beyond its last one.
fn is_plan(text: &str) -> bool {
    let plan = match Plan::new("test", text, Path::new("/nonexistent")) {
        Ok(plan) => plan,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let numbers = plan.numbers();
    assert!(numbers > 0, "a campaign without cells is refused");
    for cell in [0, 1, numbers / 2, numbers - 1].iter().filter_map(|number| plan.cell(*number)) {
        assert_eq!(cell.key("0"), cell.key("0"));
    }
    for number in [numbers, numbers.saturating_add(1), u64::MAX] {
        assert!(number < numbers || plan.cell(number).is_none(), "a cell {number} of {numbers}");
    }
    true
}

/// Goal: files that are almost valid are read or refused, without a panic. Method: each line
/// missing, twice, or with another number.
#[test]
fn almost_valid_campaigns_are_read_or_refused() {
    const NUMBERS: [&str; 6] = ["0", "9", "-", "18446744073709551615", ".", "\""];
    assert!(is_plan(ALL_AXES));
    let mut plans = 0;
    for text in [ALL_AXES, ENDLESS] {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            for number in NUMBERS {
                let changed = line.replacen(|c: char| c.is_ascii_digit(), number, 1);
                for instead in [&[][..], &[*line, *line], &[&changed]] {
                    let mistaken = [&lines[..at], instead, &lines[at + 1..]].concat().join("\n");
                    plans += u32::from(is_plan(&mistaken));
                }
            }
        }
    }
    assert!(plans > 20, "{plans}");
}

/// Goal: no row is labelled with a number of CPUs, a policy, a rate or a length that did not run.
#[test]
fn what_a_study_or_a_machine_does_not_have_is_refused() {
    let plan = |kind: &str, rest: &str| {
        let text = format!("[{kind}]\nmachines = ['x5675-2s']\n{rest}\n");
        Plan::new("test", &text, Path::new("/nonexistent")).map_err(|error| error.to_string())
    };
    for (impossible, next) in [("1", 2), ("5", 6), ("13", 24), ("2,36,37", 48)] {
        let refused = plan("simulate", &format!("studies = ['rearm']\ncpus = \"{impossible}\""));
        let why = refused.unwrap_err();
        assert!(why.contains("simulate.cpus: ") && why.contains(&format!("{next} CPUs")), "{why}");
    }
    // A projection leaves the other CPUs of a socket off.
    let projects = plan("project", "traces = ['idle.txt.gz']\ncpus = [1, 5, 36]").unwrap();
    let counts: Vec<Option<u16>> = projects.cells().map(|cell| cell.cpus).collect();
    assert_eq!(counts.iter().flatten().max(), Some(&36));

    let machine = named("x5675-2s").unwrap().unwrap();
    let refusal = |text: &str, change: fn(&mut Cell)| {
        let text = format!("studies = ['{text}']\nmessages = 1");
        let mut cell = plan("simulate", &text).unwrap().cell(0).unwrap();
        change(&mut cell);
        simulate_on(&machine, &cell).expect_err("a wrong label")
    };
    for (study, change, why) in [
        ("rearm", (|cell| cell.cpus = Some(25)) as fn(&mut Cell), "36 CPUs"),
        ("rearm", |cell| cell.cpus = Some(0), "1 to 4096"),
        ("rearm", |cell| cell.cpus = Some(4_097), "1 to 4096"),
        ("rearm", |cell| cell.policy = Some(ReplayPolicy::Linux71), "knows eager, lazy"),
        ("rearm", |cell| cell.length = Some(5), "name a policy"),
        ("rearm", |cell| cell.hz = Some(0), "1 to 100000"),
        ("phase", |cell| cell.policy = Some(ReplayPolicy::Lazy), "leave the policy out"),
        ("phase", |cell| cell.length = Some(5), "leave the length out"),
        ("schedule", |cell| cell.policy = Some(ReplayPolicy::Eager), "not eager"),
        ("schedule", |cell| cell.length = Some(0), "at least 1"),
    ] {
        let refused = refusal(study, change);
        assert!(refused.contains(why), "{study}: {refused}");
    }
}
