//! Who waited for what.

use serde::Serialize;

/// Who waited for what, and how long.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {}
