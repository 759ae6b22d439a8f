//! Machine files: every number has an origin, and errors name file, line and key.

use tickless_machine::machines::{self, FILES};
use tickless_machine::spec::{Origin, Spec, SpecFault};

/// A line for each version of a file: its name, its fingerprint, and the reason of the change.
const CHANGES: &str = include_str!("../../machines/CHANGES.md");

fn small() -> &'static str {
    FILES.iter().find(|(name, _)| *name == "itanium2-4p").unwrap().1
}

/// Goal: a parameter does not change without a recorded reason. A new version of a file needs a
/// line in `machines/CHANGES.md`, with its fingerprint and the reason.
#[test]
fn parameters_change_with_a_reason() {
    for (name, _) in FILES {
        let spec = machines::named(name).unwrap().unwrap();
        let mut mine = CHANGES.lines().filter(|line| line.starts_with(&format!("| {name} |")));
        let fields: Vec<&str> = mine.next_back().unwrap_or("").split('|').map(str::trim).collect();
        let (recorded, reason) = (fields.get(2).copied(), fields.get(3).copied());
        let fingerprint = format!("{:016x}", spec.fingerprint());
        assert_eq!(
            recorded,
            Some(fingerprint.as_str()),
            "add to machines/CHANGES.md, with the reason: | {name} | {fingerprint} | ... |"
        );
        assert!(reason.is_some_and(|reason| reason.len() > 15), "{name}: a reason is a sentence");
    }
}

#[test]
fn fingerprint_covers_numbers_and_origins() {
    let spec = Spec::parse("a", small()).unwrap();
    for (key, parameter) in spec.parameters() {
        assert_ne!(spec.with(key, parameter.value + 1.0).fingerprint(), spec.fingerprint());
    }
    let other = small().replace("one bus; cycles", "one bus: cycles");
    assert_eq!(Spec::parse("a", &other).unwrap().fingerprint(), spec.fingerprint());
    let other =
        small().replace("source = \"G. Gustafson, 2004, first mail\"", "source = \"hearsay\"");
    assert_ne!(Spec::parse("a", &other).unwrap().fingerprint(), spec.fingerprint());
}

/// Goal: a fitted number names a cell that a study calibrates, an assumed number has a range.
#[test]
fn every_number_has_an_origin() {
    let calibrated = [
        "32p.before.warm",
        "4p.after.warm",
        "72.tsc.jobs_per_min",
        "480.tsc.jobs_per_min",
        "72.hpet.read_percent",
        "lazy.us_per_round_trip",
        "alone.seconds",
        "together.aligned.seconds",
        "later.apart.seconds",
        "later.apart_over_aligned",
    ];
    for (name, _) in FILES {
        for (key, parameter) in machines::named(name).unwrap().unwrap().parameters() {
            match &parameter.origin {
                Origin::Source(source) => assert!(source.len() > 5, "{name}: {key}"),
                Origin::Assumed { low, high, because } => {
                    assert!(low <= high && because.len() > 3, "{name}: {key}");
                }
                Origin::Fitted(cell) => {
                    assert!(calibrated.contains(&cell.as_str()), "{name}: {key}: {cell}");
                }
            }
        }
    }
}

#[test]
fn errors_name_line_and_key() {
    let text = small();
    let line_of =
        |text: &str, key: &str| 1 + text.lines().position(|line| line.starts_with(key)).unwrap();
    let node = text.lines().find(|line| line.starts_with("node_ns")).unwrap();
    const POSITIVE: &str = "greater than zero, and at most 10^9";
    let cases = [
        ("node_ns = { value = -1, source = \"none\" }", SpecFault::Range(POSITIVE)),
        ("node_ns = { value = 1e18, source = \"none\" }", SpecFault::Range(POSITIVE)),
        (
            "node_ns = { value = 1, assumed = [2, 3] }",
            SpecFault::Range("within the range that is assumed for it"),
        ),
        ("node_ns = 120", SpecFault::Shape),
        ("node_ns = { value = \"120\", source = \"none\" }", SpecFault::Shape),
        ("node_ns = { value = nan, source = \"none\" }", SpecFault::Shape),
        ("node_ns = { source = \"none\" }", SpecFault::Shape),
        ("node_ns = { value = 120, sorce = \"none\" }", SpecFault::Shape),
        ("node_ns = { value = 120 }", SpecFault::Origin),
        ("node_ns = { value = 120, source = \"a\", fitted = \"b\" }", SpecFault::Origin),
    ];
    for (instead, fault) in cases {
        let broken = text.replace(node, instead);
        let error = Spec::parse("machines/x.toml", &broken).unwrap_err();
        assert_eq!((error.key.as_str(), &error.fault), ("line.node_ns", &fault), "{instead}");
        assert_eq!(error.line, line_of(&broken, "node_ns"), "{instead}");
        assert!(error.to_string().starts_with("machines/x.toml:"), "{error}");
    }
    let begin = text.find("load_share").unwrap();
    let end = begin + text[begin..].find("}\n").unwrap();
    let share = "load_share = { value = 1.1, source = \"none\" ";
    let share = format!("{}{share}{}", &text[..begin], &text[end..]);
    let error = Spec::parse("a", &share).unwrap_err();
    let range = SpecFault::Range("greater than zero, and at most 1");
    assert_eq!((error.key.as_str(), error.fault), ("line.load_share", range));
    let unknown =
        text.replace(node, &format!("{node}\nnodes_ns = {{ value = 1, source = \"a\" }}"));
    let error = Spec::parse("a", &unknown).unwrap_err();
    assert_eq!((error.key.as_str(), error.fault), ("line.nodes_ns", SpecFault::Unknown));
    assert_eq!(error.line, line_of(&unknown, "nodes_ns"));
    let error = Spec::parse("a", &text.replace(node, "")).unwrap_err();
    assert_eq!((error.key.as_str(), error.fault), ("line.node_ns", SpecFault::Missing));
    let half = text.replace("sockets = { value = 1,", "sockets = { value = 1.5,");
    let error = Spec::parse("a", &half).unwrap_err();
    assert_eq!(error.fault, SpecFault::Range("a whole number from 1 to 4096"));
    let error = Spec::parse("a", &text.replace("[line]", "[line")).unwrap_err();
    assert!(matches!(error.fault, SpecFault::Syntax(_)), "{error}");
    assert_eq!(error.line, line_of(text, "[line"));
}

/// Goal: a file needs a rate for each number of busy SMT threads, and three for each idle state.
#[test]
fn smt_rates_and_idle_states_must_be_complete() {
    let text = FILES.iter().find(|(name, _)| *name == "power10-core").unwrap().1;
    let without = |start: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(start)).collect();
        Spec::parse("a", &lines.join("\n")).unwrap_err()
    };
    assert_eq!(without("rate_5").key, "smt.rate_5");
    assert_eq!(without("residency_us").key, "idle.snooze.residency_us");
}

/// Goal: files that are almost valid are read or refused, without a panic, and what is read is
/// written and read back. Method: each line missing, twice, or with another number.
#[test]
fn almost_valid_files_are_read_or_refused() {
    const NUMBERS: [&str; 8] = ["0", "9", "-", "18446744073709551615", ".", "\"", "inf", "nan"];
    let mut read = 0;
    for (name, text) in FILES {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let number = NUMBERS[at % NUMBERS.len()];
            let changed = line.replacen(|c: char| c.is_ascii_digit(), number, 1);
            for instead in [&[][..], &[*line, *line], &[&changed]] {
                let mistaken = [&lines[..at], instead, &lines[at + 1..]].concat().join("\n");
                match Spec::parse(name, &mistaken) {
                    Ok(spec) => {
                        let again = Spec::parse(name, &spec.to_toml()).unwrap();
                        assert_eq!(again, spec, "{name}, line {at}");
                        read += 1;
                    }
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
        }
    }
    assert!(read > 100, "{read}");
}
