//! A fuzz target that reads the bytes as a campaign's file, which requests many computations
//! (cells). Checks that reading succeeds or returns an error without panicking, and that no cell
//! has a number beyond the last one.

use std::path::Path;
use tickless_fleet::campaign::{Campaign, Plan};

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Campaign::parse("fuzz", text) {
        Ok(campaign) if is_self_contained(&campaign) => plan(text),
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The fuzzer must not read arbitrary files, so it skips campaigns that name files.
fn is_self_contained(campaign: &Campaign) -> bool {
    let is_name = |name: &String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let simulate = campaign.simulate.as_ref();
    campaign.replay.is_none()
        && campaign.project.is_none()
        && simulate.is_none_or(|axes| axes.machines.iter().all(is_name))
}

fn plan(text: &str) {
    let plan = match Plan::new("fuzz", text, Path::new("/nonexistent")) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
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
}
