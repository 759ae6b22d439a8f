//! A shard: the share of a campaign's cells that one process computes.

use std::fmt;

/// Shard `index` of `count`: every `count`-th cell, beginning with cell `index`. Indexes count from
/// 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    pub index: u64,
    pub count: u64,
}

impl Shard {
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// Finds the shard of this process. If `asked` is `I/N`, that is shard I of N. If it is only
    /// `N`, the index comes from the environment: that of the task in a Slurm array, or of an
    /// indexed Kubernetes job. Without `asked`, index and count are those of the Slurm array;
    /// without an array, the shard is the whole campaign.
    pub fn find(
        asked: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Shard, String> {
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| {
                format!("{text:?} is no shard; write I/N, such as 0/8 for the first of 8")
            })
        };
        let variable = |name: &str| environment(name).map(|text| number(&text)).transpose();
        // The task numbers of a Slurm array may begin at any number and have a step.
        let task = variable("SLURM_ARRAY_TASK_ID")?;
        let first = variable("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
        let step = variable("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
        let of_slurm = task.map(|task| task.saturating_sub(first) / step);
        let of_kubernetes = variable("JOB_COMPLETION_INDEX")?;
        let index = of_slurm.or(of_kubernetes);
        let slurm_count = variable("SLURM_ARRAY_TASK_COUNT")?.filter(|_| of_slurm.is_some());
        let (index, count) = match (asked.map(|text| text.split_once('/').ok_or(text)), index) {
            (Some(Ok((index, count))), _) => (number(index)?, number(count)?),
            (Some(Err(count)), Some(index)) => (index, number(count)?),
            (Some(Err(count)), None) => {
                return Err(format!(
                    "--shard {count} names no index, and neither SLURM_ARRAY_TASK_ID nor \
                     JOB_COMPLETION_INDEX is set; write I/N"
                ));
            }
            (None, None) => (0, 1),
            (None, Some(index)) => match slurm_count {
                Some(count) => (index, count),
                None => {
                    return Err(format!(
                        "this is task {index} of a job, but the environment does not have the \
                         number of tasks; add --shard N"
                    ));
                }
            },
        };
        match index < count {
            true => Ok(Shard { index, count }),
            false => Err(format!("there is no shard {index} of {count}; they count from 0")),
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

    #[test]
    fn a_shard_is_read_from_the_command_line_or_the_batch_system() {
        const SLURM: &str = "SLURM_ARRAY_TASK_ID=12 SLURM_ARRAY_TASK_COUNT=5 \
            SLURM_ARRAY_TASK_MIN=10 SLURM_ARRAY_TASK_STEP=2";
        for (asked, environment, wanted) in [
            (None, "", Some((0, 1))),
            (Some("3/8"), "JOB_COMPLETION_INDEX=5", Some((3, 8))),
            (Some("8"), "JOB_COMPLETION_INDEX=5", Some((5, 8))),
            (None, SLURM, Some((1, 5))),
            (Some("7"), SLURM, Some((1, 7))),
            // Errors: an index that is not below the count, a missing count or index, and text that
            // is no number.
            (Some("8/8"), "", None),
            (Some("0/0"), "", None),
            (Some("8"), "", None),
            (Some("a/8"), "", None),
            (None, "JOB_COMPLETION_INDEX=5", None),
            (None, "SLURM_ARRAY_TASK_ID=5", None),
            (Some("3"), "SLURM_ARRAY_TASK_ID=x", None),
        ] {
            let variables = environment.split_whitespace().filter_map(|it| it.split_once('='));
            let value = |name: &str| {
                let mut variables = variables.clone();
                variables.find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
            };
            let shard = Shard::find(asked, value).map(|shard| (shard.index, shard.count));
            assert_eq!(shard.ok(), wanted, "{asked:?} {environment}");
        }
    }
}
