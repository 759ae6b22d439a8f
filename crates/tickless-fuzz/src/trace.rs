//! Bytes as a kernel trace: whatever is in a file, it is read, or refused with a reason, and what
//! was read can be replayed; nothing fires early.

use tickless_trace::Trace;
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

/// Performs `bytes`.
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
