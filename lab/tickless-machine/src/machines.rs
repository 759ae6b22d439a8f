//! The machine descriptions that are compiled into the program.

use crate::spec::{Spec, SpecError};

pub const FILES: &[(&str, &str)] = &[
    ("x5675-2s", include_str!("../machines/x5675-2s.toml")),
    ("haswell-ex-4s", include_str!("../machines/haswell-ex-4s.toml")),
    ("ivybridge-ex-16s", include_str!("../machines/ivybridge-ex-16s.toml")),
    ("itanium2-32p", include_str!("../machines/itanium2-32p.toml")),
    ("itanium2-4p", include_str!("../machines/itanium2-4p.toml")),
    ("atom-e3825", include_str!("../machines/atom-e3825.toml")),
    ("itanium2-32w-2005", include_str!("../machines/itanium2-32w-2005.toml")),
    ("itanium2-4w-2005", include_str!("../machines/itanium2-4w-2005.toml")),
    ("power10-core", include_str!("../machines/power10-core.toml")),
    ("power10-8c", include_str!("../machines/power10-8c.toml")),
    ("power10-later", include_str!("../machines/power10-later.toml")),
    ("host", include_str!("../machines/host.toml")),
];

pub fn named(name: &str) -> Option<Result<Spec, SpecError>> {
    let (name, text) = FILES.iter().find(|(known, _)| *known == name)?;
    Some(Spec::parse(&format!("machines/{name}.toml"), text))
}
