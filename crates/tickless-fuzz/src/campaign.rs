//! Bytes as the file of a campaign: read, or refused with a message; a plan's cells are those that
//! its axes allow, whichever number is asked for.

use std::path::Path;
use tickless_fleet::campaign::{Campaign, Plan};

/// Performs `bytes`.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Campaign::parse("fuzz", text) {
        Ok(campaign) if is_by_itself(&campaign) => plan(text),
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Does it name no files? Those of this machine are no concern of a fuzzer.
fn is_by_itself(campaign: &Campaign) -> bool {
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
    let asked = [0, 1, numbers / 2, numbers - 1];
    let cells = asked.map(|number| plan.cell(number));
    for cell in cells.iter().flatten() {
        assert_eq!(cell.key("0"), cell.key("0"));
    }
    // Beyond the last there is none, however far.
    for number in [numbers, numbers.saturating_add(1), u64::MAX] {
        assert!(number < numbers || plan.cell(number).is_none(), "there is no cell {number}");
    }
    let first_of_many = plan.cells(0, u64::MAX).count();
    assert!(first_of_many <= 1, "a shard has its own cells only");
}
