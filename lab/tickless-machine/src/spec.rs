//! The machine files: TOML files that describe a machine, and name the origin of every number.
//!
//! ```toml
//! [line]
//! node_ns = { value = 50, assumed = [40, 60], because = "Westmere takes 37, Broadwell 40-50" }
//! far_ns = { value = 640, fitted = "32p.before.warm" }
//! near_ns = { value = 132, source = "core-to-core latency, two-socket Broadwell" }
//! ```
//!
//! A number has exactly one of `source`, `assumed` (with the range over which the sensitivity study
//! varies it) and `fitted` (with the name of the measured result to which the number was fitted;
//! reports then show that result as calibrated, never as predicted). There are no defaults: a
//! missing number, an unknown key and a number out of range are errors, which name file, line and
//! key.

use crate::cost::{self, Costs, Kind};
use crate::ps::Ps;
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    pub file: String,
    pub name: String,
    pub about: String,
    /// The seed for the random numbers of simulations of this machine. It is not in the file.
    pub seed: u64,
    parameters: BTreeMap<String, Parameter>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// The number, in the unit that the end of its key names, such as `_ns`.
    pub value: f64,
    pub origin: Origin,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Origin {
    Source(String),
    Assumed { low: f64, high: f64, because: String },
    Fitted(String),
}

#[derive(Clone, PartialEq, Debug, Error)]
#[error("{file}{}: {key}: {fault}", if *line > 0 { format!(":{line}") } else { String::new() })]
pub struct SpecError {
    pub file: String,
    /// The line, counted from 1; 0 if [`require`](Spec::require) has found that a key is missing.
    pub line: usize,
    pub key: String,
    pub fault: SpecFault,
}

#[derive(Clone, PartialEq, Debug, Error)]
pub enum SpecFault {
    #[error("not TOML: {0}")]
    Syntax(String),
    /// No part of the program reads this key.
    #[error("nothing reads this key; remove it, or correct its name")]
    Unknown,
    #[error("missing; give it a value and its source")]
    Missing,
    /// The value must be a table with `value` and one of `source`, `assumed`, `fitted`.
    #[error(
        "write {{ value = NUMBER, source = \"...\" }}, or assumed = [LOW, HIGH], or \
         fitted = \"CELL\""
    )]
    Shape,
    /// The number has none, or more than one, of `source`, `assumed` and `fitted`.
    #[error("name exactly one of source, assumed = [LOW, HIGH], fitted")]
    Origin,
    #[error("must be {0}")]
    Range(&'static str),
}

const LINE_MAX: usize = 100;

impl Spec {
    pub fn parse(file: &str, text: &str) -> Result<Spec, SpecError> {
        let reader = Reader { file, text };
        let root = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reader.error(at, "", SpecFault::Syntax(error.message().to_string()))
        })?;
        let mut spec = Spec {
            file: file.to_string(),
            name: String::new(),
            about: String::new(),
            seed: 0,
            parameters: BTreeMap::new(),
        };
        for (key, value) in root.get_ref() {
            let name = key.get_ref().as_ref();
            match (name, value.get_ref()) {
                ("name", DeValue::String(text)) => spec.name = text.to_string(),
                ("about", DeValue::String(text)) => spec.about = text.to_string(),
                (_, DeValue::Table(table)) => reader.table(name, table, &mut spec.parameters)?,
                _ => return Err(reader.error(key.span().start, name, SpecFault::Unknown)),
            }
        }
        let missing =
            if spec.name.is_empty() { Some("name".to_string()) } else { spec.missing_key() };
        match missing {
            None => Ok(spec),
            Some(key) => Err(reader.error(text.len(), &key, SpecFault::Missing)),
        }
    }

    /// Returns the number of a key; zero if the file lacks it. [`parse`](Self::parse) allows only
    /// optional numbers to be missing.
    pub fn value(&self, key: &str) -> f64 {
        self.parameter(key).map_or(0.0, |parameter| parameter.value)
    }

    pub fn time(&self, key: &str) -> Ps {
        Ps::from_ns_f64(self.value(key))
    }

    pub(crate) fn parameter(&self, key: &str) -> Option<&Parameter> {
        self.parameters.get(key)
    }

    pub fn parameters(&self) -> impl Iterator<Item = (&str, &Parameter)> {
        self.parameters.iter().map(|(key, parameter)| (key.as_str(), parameter))
    }

    /// Returns a copy of the machine with another value for one key, for studies that vary it. If
    /// the file lacks the key, the copy is unchanged.
    #[must_use]
    pub fn with(&self, key: &str, value: f64) -> Spec {
        let mut spec = self.clone();
        if let Some(parameter) = spec.parameters.get_mut(key) {
            parameter.value = value;
        }
        spec
    }

    #[must_use]
    pub fn with_parameter(&self, key: &str, parameter: Parameter) -> Spec {
        let mut spec = self.clone();
        spec.parameters.insert(key.to_string(), parameter);
        spec
    }

    /// Returns the text of a machine file, from which [`parse`](Self::parse) makes this machine.
    pub fn to_toml(&self) -> String {
        let mut text = format!("name = {}\nabout = {}\n", quoted(&self.name), quoted(&self.about));
        let mut table = "";
        for (key, Parameter { value, origin }) in &self.parameters {
            let (prefix, name) = key.rsplit_once('.').unwrap_or(("", key));
            if prefix != table {
                text += &format!("\n[{prefix}]\n");
                table = prefix;
            }
            let from = match origin {
                Origin::Source(source) => format!("source = {}", quoted(source)),
                Origin::Assumed { low, high, because } => {
                    format!("assumed = [{low}, {high}], because = {}", quoted(because))
                }
                Origin::Fitted(cell) => format!("fitted = {}", quoted(cell)),
            };
            let one_line = format!("{name} = {{ value = {value}, {from} }}\n");
            if one_line.len() <= LINE_MAX {
                text += &one_line;
            } else {
                text += &format!("{name} = {{ value = {value},\n    {from} }}\n");
            }
        }
        text
    }

    /// Checks that the file has these optional keys, which a study needs. The error names a missing
    /// key.
    pub fn require(&self, keys: &[&str]) -> Result<(), SpecError> {
        match keys.iter().find(|key| !self.parameters.contains_key(**key)) {
            None => Ok(()),
            Some(key) => Err(SpecError {
                file: self.file.clone(),
                line: 0,
                key: key.to_string(),
                fault: SpecFault::Missing,
            }),
        }
    }

    pub fn costs(&self) -> Costs {
        Costs::read(&|key| self.value(key), &self.idle_names())
    }

    fn missing_key(&self) -> Option<String> {
        let threads = self.value("topology.threads_per_core") as u16;
        let required = cost::required(threads, &self.idle_names());
        required.into_iter().find(|key| self.parameter(key).is_none())
    }

    fn idle_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.parameters.keys().filter_map(|key| cost::idle_name(key)).collect();
        names.dedup();
        names
    }

    /// Returns a hash of all keys, numbers and origins. Comments in the file do not change it.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |text: &str| {
            for byte in text.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        for (key, parameter) in &self.parameters {
            add(&format!("{key}={:?} {:?}\n", parameter.value, parameter.origin));
        }
        hash
    }
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn error(&self, at: usize, key: &str, fault: SpecFault) -> SpecError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        SpecError { file: self.file.to_string(), line, key: key.to_string(), fault }
    }

    /// Reads a table of parameters; those of idle states are one level deeper.
    fn table(
        &self,
        prefix: &str,
        table: &DeTable<'_>,
        into: &mut BTreeMap<String, Parameter>,
    ) -> Result<(), SpecError> {
        for (name, value) in table {
            let at = name.span().start;
            let key = format!("{prefix}.{}", name.get_ref());
            let error = |fault| self.error(at, &key, fault);
            match (cost::kind(&key), value.get_ref()) {
                (Some(kind), _) => {
                    let stated = Stated::read(value).map_err(error)?;
                    if let Some(must) = kind.rejects(stated.value) {
                        return Err(error(SpecFault::Range(must)));
                    }
                    into.insert(key, stated);
                }
                (None, DeValue::Table(inner)) if prefix == "idle" => {
                    self.table(&key, inner, into)?
                }
                (None, _) => return Err(error(SpecFault::Unknown)),
            }
        }
        Ok(())
    }
}

/// What a file states of a number.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    value: f64,
    source: Option<String>,
    fitted: Option<String>,
    assumed: Option<[f64; 2]>,
    #[serde(default)]
    because: String,
}

impl Stated {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Parameter, SpecFault> {
        let stated = Stated::deserialize(ValueDeserializer::from(value.clone()));
        let Ok(Stated { value, source, fitted, assumed, because }) = stated else {
            return Err(SpecFault::Shape);
        };
        let is_empty = |text: &String| text.trim().is_empty();
        let is_shaped = assumed.iter().flatten().chain([&value]).all(|it| it.is_finite());
        if !is_shaped || [&source, &fitted].into_iter().flatten().any(is_empty) {
            return Err(SpecFault::Shape);
        }
        let origin = match (source, fitted, assumed) {
            (Some(source), None, None) => Origin::Source(source),
            (None, Some(cell), None) => Origin::Fitted(cell),
            (None, None, Some([low, high])) if (low..=high).contains(&value) => {
                Origin::Assumed { low, high, because }
            }
            (None, None, Some(_)) => {
                return Err(SpecFault::Range("within the range that is assumed for it"));
            }
            _ => return Err(SpecFault::Origin),
        };
        Ok(Parameter { value, origin })
    }
}

/// A second, in nanoseconds. With more, the times of a simulation overflow.
const AMOUNT_MAX: f64 = 1e9;

impl Kind {
    /// Returns what a value of this kind must be; `None` if `value` is valid.
    fn rejects(self, value: f64) -> Option<&'static str> {
        match self {
            Kind::Count if value < 1.0 || value.fract() != 0.0 || value > 4096.0 => {
                Some("a whole number from 1 to 4096")
            }
            Kind::Positive if value <= 0.0 || value > AMOUNT_MAX => {
                Some("greater than zero, and at most 10^9")
            }
            Kind::Amount if !(0.0..=AMOUNT_MAX).contains(&value) => Some("from 0 to 10^9"),
            Kind::Part if !(0.0..=1.0).contains(&value) => Some("from 0 to 1"),
            Kind::Share if value <= 0.0 || value > 1.0 => Some("greater than zero, and at most 1"),
            Kind::Clock if !(0.05..=10.0).contains(&value) => {
                Some("a clock rate from 0.05 to 10 GHz")
            }
            _ => None,
        }
    }
}

/// Quotes a text as a TOML basic string. JSON's quoting fits, except that TOML also requires the
/// control character U+007F to be escaped.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
