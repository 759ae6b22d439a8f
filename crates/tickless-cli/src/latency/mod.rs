//! `tickless latency`.
//!
//! | file | what |
//! |---|---|
//! | `args` | the command line, with options named as cyclictest names them |
//! | `limit` | what must not be exceeded |
//! | `show`, `plot` | the results |

pub mod args;
mod limit;
mod plot;
mod show;
