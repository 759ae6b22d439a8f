//! `tickless record`.
//!
//! | file | what |
//! |---|---|
//! | `args` | the command line, and a recording from its beginning to its end |
//! | `command` | the command around which is recorded, and what ends a recording |
//! | `output` | the file |
//! | `overwrite` | asking before a file is lost |
//! | `size` | sizes of buffers as people write them |

pub mod args;
pub(crate) mod command;
mod output;
pub(crate) mod overwrite;
mod size;

pub(crate) use output::Output;
