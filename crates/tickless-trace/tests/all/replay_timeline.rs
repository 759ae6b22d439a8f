//! Compares the timeline of a replay with the trace event format, and with the summary.

use crate::support::sample_path;
use serde_json::Value;
use std::collections::BTreeMap;
use tickless_trace::Trace;
use tickless_trace::replay::{Inference, ReplayPolicy, summarise, write_timeline};

/// Goal: every event has the fields of its kind, slices of a track nest, and each policy's track
/// has as many writes as the summary.
#[test]
fn timelines_are_well_formed_and_whole() {
    for name in ["idle", "pipe-two-cpus"] {
        let trace = Trace::read(&sample_path(name)).unwrap();
        let mut text = Vec::new();
        write_timeline(&trace, &ReplayPolicy::DEFAULT, Inference::On, &mut text).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        let mut tracks: BTreeMap<(u64, u64), String> = BTreeMap::new();
        let mut slices: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
        let mut writes: BTreeMap<String, u64> = BTreeMap::new();
        for event in events {
            let number =
                |key: &str| event[key].as_f64().unwrap_or_else(|| panic!("{key}: {event}"));
            let track = (number("pid") as u64, number("tid") as u64);
            assert!(track.0 >= 1 && track.0 <= u64::from(trace.cpus) && event["name"].is_string());
            match event["ph"].as_str().unwrap() {
                "M" => {
                    let name = event["args"]["name"].as_str().unwrap().to_string();
                    tracks.insert(track, name);
                }
                "X" => {
                    assert!(number("dur") >= 0.0 && number("ts") >= 0.0, "{event}");
                    slices.entry(track).or_default().push((number("ts"), number("dur")));
                }
                "i" => {
                    assert_eq!(event["s"], "t");
                    *writes.entry(tracks[&track].clone()).or_default() += 1;
                }
                other => panic!("{other}"),
            }
        }
        for (track, mut slices) in slices {
            assert!(tracks.contains_key(&track), "{track:?}");
            // The longest of the slices that begin together contains the others.
            slices.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
            let mut open: Vec<f64> = Vec::new();
            for (from, length) in slices {
                open.retain(|end| *end > from + 1e-6);
                assert!(open.iter().all(|end| from + length <= end + 1e-6), "{track:?} at {from}");
                open.push(from + length);
            }
        }
        let summary = summarise(&trace, &ReplayPolicy::DEFAULT, Inference::On);
        let of = |name: &str| writes.get(&format!("device writes: {name}")).copied().unwrap_or(0);
        assert_eq!(Some(of("recorded")), summary.trace.recorded.device_writes, "{name}");
        for result in &summary.policies {
            let all = result.device_writes + result.inferred_writes;
            assert_eq!(of(result.policy), all, "{name}: {}", result.policy);
        }
    }
}
