//! Reads binary recordings: events in the form in which the kernel writes them.
//!
//! The pages of a ring buffer hold events of a few dozen bytes. The kernel describes the fields of
//! each event in a text (`events/*/*/format`), and names functions by address in `/proc/kallsyms`.
//! Three kinds of recordings consist of these parts: `trace.dat` of trace-cmd; `perf.data`; and
//! what [`Live`](crate::record::Live) reads during a recording. All three become the same
//! [`Record`](super::Record)s as the text that the tools print.

mod bytes;
mod decode;
mod format;
mod head;
mod packed;
mod page;
mod perf_data;
mod symbols;
mod trace_dat;

pub(crate) use decode::Decoder;
pub(super) use decode::Undecoded;
pub use page::Page;
pub use symbols::Symbols;

pub(super) use perf_data::{is_perf_data, read as read_perf_data};
pub(super) use trace_dat::{is_trace_dat, read as read_trace_dat};
