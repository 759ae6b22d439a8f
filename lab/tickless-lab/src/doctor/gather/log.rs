//! Reads the kernel's messages, from the oldest that is still in its log.

use super::refusal;
use crate::doctor::facts::Seen;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the messages in the log, without waiting for new ones. Drops sequence numbers and times.
pub fn read(path: &Path) -> Seen<Vec<String>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    let mut file = file.map_err(|error| refusal(path, &error))?;
    let mut messages = Vec::new();
    // Each read returns one message, which the kernel limits to this length.
    let mut buffer = vec![0; 8 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => messages.extend(parse(&String::from_utf8_lossy(&buffer[..length]))),
            // The kernel has overwritten the next message since the last read. The next read
            // continues with the oldest message that is left.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(refusal(path, &error)),
        }
    }
    Ok(messages)
}

/// Returns the messages of the kernel itself in the text. Leaves out messages that programs wrote
/// into the log, and the indented lines after a message, which describe its device.
fn parse(text: &str) -> Vec<String> {
    let message = |line: &str| {
        if line.starts_with(' ') {
            return None;
        }
        let (head, message) = line.split_once(';')?;
        let priority: u32 = head.split(',').next()?.parse().ok()?;
        // The lowest three bits of the priority are the message's level. The bits above them are
        // the facility, which is the message's source; 0 is the kernel.
        (priority >> 3 == 0).then(|| message.chars().filter(|c| !c.is_control()).collect())
    };
    text.lines().filter_map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_programs_are_left_out() {
        let text = "6,1,0,-;clocksource: Switched to clocksource tsc\n SUBSYSTEM=x\n\
                    12,2,5,-;Marking clocksource 'tsc' as unstable\nbroken\n";
        assert_eq!(parse(text), ["clocksource: Switched to clocksource tsc"]);
    }

    #[test]
    fn a_missing_log_is_an_error() {
        assert!(read(Path::new("/no/such/log")).unwrap_err().contains("no /no/such/log"));
    }
}
