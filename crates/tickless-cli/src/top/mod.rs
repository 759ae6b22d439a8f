//! `tickless top`.
//!
//! | file | what |
//! |---|---|
//! | `args` | the command line |
//! | `batch` | tables one after the other, printed |
//! | `live` | a terminal that is kept up to date |
//! | `screen` | what the terminal shows, and what keys do: no terminal needed |
//! | `cells` | a row as words |
//! | `show` | tables as text, JSON lines or CSV |

pub mod args;
mod batch;
mod cells;
mod live;
mod screen;
mod show;
