//! Prints the lines of `machines/CHANGES.md` that are missing. Run by hand, with the reason in
//! `REASON`: `REASON="..." cargo test --test fingerprints -- --ignored --nocapture`.

use tickless_machine::machines::{self, FILES};

#[test]
#[ignore = "prints what to record"]
fn lines_to_record() {
    let reason = std::env::var("REASON").unwrap_or_default();
    for (name, _) in FILES {
        let fingerprint = machines::named(name).unwrap().unwrap().fingerprint();
        let recorded = include_str!("../machines/CHANGES.md");
        if !recorded.contains(&format!("| {name} | {fingerprint:016x} |")) {
            println!("| {name} | {fingerprint:016x} | {reason} |");
        }
    }
}
