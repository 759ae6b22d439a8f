//! The properties of this machine that influence live measurements.

use crate::measure;
use serde::Serialize;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    pub cpu: String,
    pub cpus: usize,
    pub kernel: String,
    pub clock_source: Option<String>,
    /// The load averages over 1, 5 and 15 minutes before the run.
    pub load: Vec<f64>,
    pub disturbance: Option<String>,
}

impl Facts {
    pub fn here() -> Facts {
        let read = |path: &str| Some(fs::read_to_string(path).ok()?.trim().to_string());
        let load = read("/proc/loadavg").unwrap_or_default();
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Facts {
            cpu: measure::processor(),
            cpus: measure::cpus().len(),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_string()),
            clock_source: read(source),
            load: load.split(' ').take(3).filter_map(|word| word.parse().ok()).collect(),
            disturbance: measure::disturbance(),
        }
    }
}

pub fn date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    of_seconds(since.as_secs())
}

/// Formats seconds since 1970 as a date. The algorithm is from H. Hinnant, "chrono-compatible
/// low-level date algorithms".
fn of_seconds(seconds: u64) -> String {
    const DAY: u64 = 86_400;
    let (days, of_day) = (seconds / DAY + 719_468, seconds % DAY);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months are counted from March, so that the leap day is the last day of a year.
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + 400 * era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, want) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(of_seconds(seconds), want);
        }
    }

    #[test]
    fn the_machine_is_known() {
        let facts = Facts::here();
        assert!(facts.cpus >= 1 && !facts.cpu.is_empty() && facts.load.len() == 3, "{facts:?}");
    }
}
