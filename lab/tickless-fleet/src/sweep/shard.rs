//! A shard: the share of a campaign's cells that one process computes.

use std::fmt;
use std::str::FromStr;

/// Shard `index` of `count`: every `count`-th cell, from cell `index` on. Indexes count from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    pub index: u64,
    pub count: u64,
}

impl Shard {
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            Some(Shard { index: index.trim().parse().ok()?, count: count.trim().parse().ok()? })
        });
        match numbers {
            Some(shard) if shard.index < shard.count => Ok(shard),
            Some(shard) => Err(format!("there is no shard {shard}; they count from 0")),
            None => Err(format!("{text:?} is no shard; write I/N, such as 0/8 for the first of 8")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}
