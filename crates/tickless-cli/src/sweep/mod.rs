//! `tickless sweep`.
//!
//! | file | what |
//! |---|---|
//! | `args` | the command line, and the question before a very large campaign |
//! | `show` | how far a campaign is |

pub mod args;
pub mod show;
