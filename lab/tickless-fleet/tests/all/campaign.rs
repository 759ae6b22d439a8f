//! Campaign files that are almost valid.

use std::path::Path;
use tickless_fleet::campaign::Plan;

const ALL_AXES: &str = r#"name = "all axes"

[simulate]
studies = ["rearm", "cancel", "phase"]
machines = ["x5675-2s", "itanium2-4p"]
cpus = "1-4,8"
policies = ["eager", "lazy", "restart-aware"]
hz = [100, 250, 1000]
seeds = "0-99,200"
"#;

const ENDLESS: &str = r#"[simulate]
studies = ["rearm"]
machines = ["x5675-2s"]
policies = ["eager", "lazy"]
hz = "1-100000"
seeds = "0-18446744073709551615"
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
    assert!(plan.cells(0, u64::MAX).count() <= 1, "a shard has only its own cells");
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
