//! Which part of a campaign one process performs.

use std::fmt;

/// Shard `index` of `count`, from 0: every `count`-th cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Which, from 0.
    pub index: u64,
    /// Of how many.
    pub count: u64,
}

/// What cannot be a shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardError {
    what: String,
}

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ShardError {}

/// The array of a Slurm job, and where it begins and how it is stepped.
const SLURM: [&str; 4] = [
    "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASK_COUNT",
    "SLURM_ARRAY_TASK_MIN",
    "SLURM_ARRAY_TASK_STEP",
];
/// The index of a Kubernetes job's pod, from 0.
const KUBERNETES: &str = "JOB_COMPLETION_INDEX";

impl Shard {
    /// Everything.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// What was asked for, completed from the environment of a batch system: `I/N` says all;
    /// `N` takes the index from Slurm or Kubernetes; nothing takes both from Slurm.
    ///
    /// # Errors
    ///
    /// What is not such a text, an index that is not below the count, and an index in the
    /// environment without a count.
    pub fn find(
        asked: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Shard, ShardError> {
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| ShardError {
                what: format!("{text:?} is no shard; write I/N, such as 0/8 for the first of 8"),
            })
        };
        let of = |name: &str| environment(name).map(|text| number(&text)).transpose();
        let slurm = of(SLURM[0])?;
        let first = of(SLURM[2])?.unwrap_or(0);
        let step = of(SLURM[3])?.unwrap_or(1).max(1);
        let slurm = slurm.map(|id| id.saturating_sub(first) / step);
        let index = match slurm {
            Some(index) => Some(index),
            None => of(KUBERNETES)?,
        };
        let shard = match asked.map(|text| text.split_once('/').ok_or(text)) {
            Some(Ok((index, count))) => Shard { index: number(index)?, count: number(count)? },
            Some(Err(count)) => {
                let index = index.ok_or_else(|| ShardError {
                    what: format!(
                        "--shard {count} names no index, and neither {} nor {KUBERNETES} is set; \
                         write I/N",
                        SLURM[0]
                    ),
                })?;
                Shard { index, count: number(count)? }
            }
            None => match (slurm, of(SLURM[1])?, index) {
                (Some(index), Some(count), _) => Shard { index, count },
                (_, _, None) => Shard::WHOLE,
                (_, _, Some(index)) => {
                    let what = format!(
                        "this is task {index} of a job, but of how many nothing says; add --shard \
                         N"
                    );
                    return Err(ShardError { what });
                }
            },
        };
        match shard {
            Shard { index, count } if index < count => Ok(shard),
            Shard { index, count } => Err(ShardError {
                what: format!("there is no shard {index} of {count}; they count from 0"),
            }),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(asked: Option<&str>, set: &[(&str, &str)]) -> Result<(u64, u64), String> {
        let of = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_string())
        };
        let shard = Shard::find(asked, of).map_err(|error| error.to_string())?;
        Ok((shard.index, shard.count))
    }

    /// Goal: the same command line works by hand, in a Slurm array that begins anywhere, and in an
    /// indexed job; what is missing is never guessed.
    #[test]
    fn shards_come_from_the_command_line_or_the_batch_system() {
        assert_eq!(find(None, &[]), Ok((0, 1)));
        assert_eq!(find(Some("3/8"), &[("JOB_COMPLETION_INDEX", "5")]), Ok((3, 8)));
        assert_eq!(find(Some("8"), &[("JOB_COMPLETION_INDEX", "5")]), Ok((5, 8)));
        let mut slurm = vec![("SLURM_ARRAY_TASK_ID", "12"), ("SLURM_ARRAY_TASK_COUNT", "5")];
        slurm.extend([("SLURM_ARRAY_TASK_MIN", "10"), ("SLURM_ARRAY_TASK_STEP", "2")]);
        assert_eq!(find(None, &slurm), Ok((1, 5)));
        assert_eq!(find(Some("7"), &slurm), Ok((1, 7)));
        for (asked, set) in [
            (Some("8/8"), vec![]),
            (Some("0/0"), vec![]),
            (Some("8"), vec![]),
            (Some("a/8"), vec![]),
            (None, vec![("JOB_COMPLETION_INDEX", "5")]),
            (None, vec![("SLURM_ARRAY_TASK_ID", "5")]),
            (Some("3"), vec![("SLURM_ARRAY_TASK_ID", "x")]),
        ] {
            assert!(find(asked, &set).is_err(), "{asked:?} {set:?}");
        }
    }
}
