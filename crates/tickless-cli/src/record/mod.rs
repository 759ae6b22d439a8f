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
mod command;
mod output;
mod overwrite;
mod size;
