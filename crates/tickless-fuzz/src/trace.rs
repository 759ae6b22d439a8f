//! Bytes as a kernel trace. Reading succeeds or returns an error, and a trace that was read can be
//! replayed without early expiries.

use tickless_trace::Trace;
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

/// Runs the target.
pub fn run(bytes: &[u8]) {
    match Trace::parse("fuzz", bytes) {
        Ok(trace) => {
            assert!(trace.messages().all(|message| message.starts_with("fuzz")));
            for inference in [Inference::On, Inference::Off] {
                let summary = summarise(&trace, &ReplayPolicy::ALL, inference);
                assert!(summary.policies.iter().all(|result| result.early == 0), "early");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
