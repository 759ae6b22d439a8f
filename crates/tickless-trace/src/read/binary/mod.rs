//! Events as the kernel writes them, before any tool prints them.
//!
//! A ring buffer's pages hold events of a few dozen bytes. Where each field is in them, the kernel
//! says in a text for each event (`events/*/*/format`), and functions are addresses that
//! `/proc/kallsyms` names. Three things are made of these parts: `trace.dat`, which trace-cmd
//! records; `perf.data`; and what [`Live`](crate::record::Live) reads while it is recorded. All
//! three become the same [`Record`](super::Record)s as the text that the tools print.
//!
//! | file | what |
//! |---|---|
//! | `bytes` | numbers and strings from a buffer that may be cut anywhere |
//! | `format` | where the fields of an event are, from the kernel's text |
//! | `decode` | an event's bytes as an [`Event`](super::Event) |
//! | `page` | the events of a ring buffer's page |
//! | `packed` | what trace-cmd compresses, and a CPU's pages one after the other |
//! | `symbols` | functions by their addresses |
//! | `head` | the formats and symbols that trace.dat and perf.data begin with |
//! | `trace_dat`, `perf_data` | the two files |

mod bytes;
mod decode;
mod format;
mod head;
mod packed;
mod page;
mod perf_data;
mod symbols;
mod trace_dat;

pub(super) use decode::Undecoded;
pub use decode::{Decoder, Occurrence};
pub use page::Page;
pub use symbols::Symbols;

pub(super) use perf_data::{is_perf_data, read as read_perf_data};
pub(super) use trace_dat::{is_trace_dat, read as read_trace_dat};
