//! Reads the lines of a trace without an event: the header (kernel, tick rate, CPUs) and remarks.
//!
//! A trace can lack any of these facts: [`super::Trace`] can be read without them.

use super::fields::{decimal, find, printable};
use tickless_core::time::CpuId;

/// The program that printed a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tool {
    /// The kernel, or nobody: the trace is a recording, not a text.
    Kernel,
    TraceCmd,
    Perf,
}

/// What a trace tells about itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Whether the text shows which tool printed it. Text of ftrace or trace-cmd without its header
    /// does not.
    pub names_tool: bool,
    pub(super) tool: Option<Tool>,
    /// How many headers of ftrace and trace-cmd the text has: one for each recording.
    pub(super) recordings: u32,
    pub(super) is_latency_format: bool,
    pub kernel: Option<String>,
    pub hz: Option<u32>,
    pub cpus: Option<u16>,
    /// According to ftrace's header: how many events the text has, and how many others were
    /// overwritten before the text was printed.
    pub(super) promised: u64,
    pub(super) overwritten: u64,
}

impl Header {
    /// Returns the kernel's version, major and minor, if the trace names it.
    pub fn version(&self) -> Option<(u32, u32)> {
        let release = self.kernel.as_deref().unwrap_or_default();
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok();
        number().zip(number())
    }

    pub(super) fn comment(&mut self, line: &[u8]) {
        let text = line.trim_ascii_start().trim_ascii_end();
        let text = text.strip_prefix(b"#").unwrap_or(text).trim_ascii();
        if text.starts_with(b"tracer:") {
            self.names_tool = true;
            self.recordings += 1;
            self.tool.get_or_insert(Tool::Kernel);
        } else if find(text, b"latency trace v").is_some() {
            self.is_latency_format = true;
        } else if text.starts_with(b"recorded:") {
            // Skip this line: it describes in free words what was recorded, and can contain text
            // that looks like a fact, such as `HZ=`.
        } else if let Some(release) = text.strip_prefix(b"os release :") {
            self.kernel = Some(printable(release.trim_ascii()));
        } else if let Some(cpus) = text.strip_prefix(b"nrcpus online :") {
            self.cpus = cpu_count(cpus.trim_ascii()).or(self.cpus);
        } else {
            self.words(text);
        }
    }

    /// Reads the facts of which one line can have several: `kernel R` (the release), `HZ=`, the
    /// numbers of entries, and `#P:` (the number of CPUs).
    fn words(&mut self, text: &[u8]) {
        let mut words = text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            if word == b"kernel" {
                self.kernel = words.next().map(printable).or(self.kernel.take());
            } else if let Some(hz) = word.strip_prefix(b"HZ=") {
                let hz = decimal(hz).filter(|hz| (1..=10_000).contains(hz));
                self.hz = hz.map(|hz| hz as u32).or(self.hz);
            } else if let Some(cpus) = word.strip_prefix(b"#P:") {
                self.cpus = cpu_count(cpus).or(self.cpus);
            } else if word == b"entries-in-buffer/entries-written:" {
                self.names_tool = true;
                if let Some((promised, written)) = words.next().and_then(entries) {
                    self.promised = promised;
                    self.overwritten = written.saturating_sub(promised);
                }
            }
        }
    }

    /// Reads a line that neither begins with `#` nor has an event, nor marks lost events. Returns
    /// whether a tool prints such lines: empty ones, remarks, and parts of a stack trace.
    pub(super) fn remark(&mut self, text: &[u8]) -> bool {
        if let Some(cpus) = text.strip_prefix(b"cpus=") {
            self.names_tool = true;
            self.tool.get_or_insert(Tool::TraceCmd);
            self.recordings += 1;
            self.cpus = cpu_count(cpus).or(self.cpus);
            return true;
        }
        text.is_empty()
            || text.starts_with(b"version = ")
            || text.starts_with(b"=>")
            || text.ends_with(b"<stack trace>")
            || text.starts_with(b"CPU") && text.ends_with(b" is empty")
            || is_perf_stack_line(text)
    }
}

/// Reads the lines with which the tools mark lost events: ftrace's `CPU:1 [LOST 12 EVENTS]`,
/// trace-cmd's `CPU:1 [12 EVENTS DROPPED]` (or without a number), perf's `PERF_RECORD_LOST lost 12`
/// and `LOST 12 events!`. Returns their number, `Some(None)` if the line has none; `None` for other
/// lines. [`lossy_cpu`] finds the CPU.
pub(super) fn lost_events(text: &[u8]) -> Option<Option<u64>> {
    if let Some(end) = find(text, b"EVENTS DROPPED]") {
        let number = text[..end].trim_ascii_end().rsplit(|&byte| byte == b'[').next();
        return Some(number.and_then(decimal));
    }
    let is_ftrace = find(text, b"[LOST ").is_some() && text.ends_with(b"EVENTS]");
    let is_perf = find(text, b"PERF_RECORD_LOST").is_some();
    let is_perf_warning = find(text, b"LOST ").is_some() && text.ends_with(b"events!");
    (is_ftrace || is_perf || is_perf_warning).then(|| {
        let mut words = text.split(|&byte| byte == b' ').map(<[u8]>::to_ascii_lowercase);
        words.find(|word| matches!(word.as_slice(), b"lost" | b"[lost"));
        words.next().and_then(|number| decimal(&number))
    })
}

/// Returns the CPU in a line about lost events: `CPU:1 [LOST 12 EVENTS]`, or of perf
/// `perf 7 [001] 3.5: PERF_RECORD_LOST lost 12`.
pub(super) fn lossy_cpu(text: &[u8]) -> Option<CpuId> {
    let mut cpu = text.strip_prefix(b"CPU:").and_then(|of| of.split(|&byte| byte == b' ').next());
    if let Some(end) = find(text, b": PERF_RECORD_LOST ") {
        let open = text[..end].iter().rposition(|&byte| byte == b'[')?;
        cpu = text[open + 1..end].split(|&byte| byte == b']').next();
    }
    let cpu = cpu?;
    super::prefix::cpu_id(decimal(cpu)?)
}

/// Returns whether `text` is a frame of the stack that perf prints under an event:
/// `ffffffff81d0a5b4 hrtimer_start_range_ns+0x4 ([kernel.kallsyms])`.
fn is_perf_stack_line(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    digits >= 6 && text.get(digits) == Some(&b' ')
}

fn cpu_count(word: &[u8]) -> Option<u16> {
    let last = decimal(word)?.checked_sub(1)?;
    super::prefix::cpu_id(last).map(|last| last.0 + 1)
}

/// Reads ftrace's `entries-in-buffer/entries-written`.
fn entries(word: &[u8]) -> Option<(u64, u64)> {
    let slash = word.iter().position(|&byte| byte == b'/')?;
    Some((decimal(&word[..slash])?, decimal(&word[slash + 1..])?))
}
