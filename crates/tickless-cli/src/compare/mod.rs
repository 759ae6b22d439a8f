//! `tickless compare`.
//!
//! | file | what |
//! |---|---|
//! | `args` | the command line |
//! | `results` | figures with their spreads, from the JSON that this program prints |
//! | `change` | what moved between two results, and what is within their spreads |
//! | `show` | as table, JSON or CSV |
//! | `page` | as HTML |

pub mod args;
mod change;
mod page;
mod results;
pub mod show;
