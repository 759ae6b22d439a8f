//! A fuzz target that reads the bytes as a kernel trace. Checks that reading succeeds or returns an
//! error without panicking, and that no timer fires early when the trace is replayed.

use tickless_trace::Trace;
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

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
