//! `tickless latency`.
//!
//! | file | what |
//! |---|---|
//! | `args` | the command line, with options named as cyclictest names them |
//! | `broken` | the trace around the first wakeup that is too late |
//! | `limit` | what must not be exceeded |
//! | `show`, `plot` | the results |

pub mod args;
mod broken;
mod limit;
mod plot;
mod show;
