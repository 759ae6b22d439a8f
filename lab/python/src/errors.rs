//! Exceptions with file, line and cause.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyError};
use pyo3::prelude::*;
use serde::de::{DeserializeOwned, IntoDeserializer};
use std::path::PathBuf;

create_exception!(tickless, TicklessError, PyException, "Why something could not be done.");

/// An exception with this text. A file's name and a line at its beginning become attributes.
pub fn error(what: impl ToString) -> PyErr {
    let what = what.to_string();
    let (file, line, cause) = parts(&what);
    let (file, cause) = (file.map(str::to_string), cause.to_string());
    Python::attach(|py| {
        let error = TicklessError::new_err(what.clone());
        let value = error.value(py);
        // Setting an attribute of a new exception does not fail.
        let _ = value.setattr("file", file);
        let _ = value.setattr("line", line);
        let _ = value.setattr("cause", cause);
        error
    })
}

/// Writes a file.
pub fn write(path: PathBuf, text: &str) -> PyResult<()> {
    let written = std::fs::write(&path, text);
    written.map_err(|cause| error(format!("{}: cannot be written: {cause}", path.display())))
}

/// Splits `FILE:LINE: CAUSE` and `FILE: CAUSE`. A file's name has a dot or a slash, and no space.
fn parts(what: &str) -> (Option<&str>, Option<u32>, &str) {
    let Some((place, cause)) = what.split_once(": ") else { return (None, None, what) };
    if place.contains(' ') || !place.contains(['.', '/']) {
        return (None, None, what);
    }
    match place.rsplit_once(':').map(|(file, line)| (file, line.parse().ok())) {
        Some((file, Some(line))) => (Some(file), Some(line), cause),
        _ => (Some(place), None, cause),
    }
}

/// A `KeyError` for an unknown key, with the nearest known one.
pub fn unknown_key(py: Python<'_>, what: &str, key: &str, known: &[String]) -> PyErr {
    let nearest = || -> PyResult<Option<String>> {
        let found = py.import("difflib")?.call_method1("get_close_matches", (key, known, 1))?;
        Ok(found.extract::<Vec<String>>()?.pop())
    };
    match nearest() {
        Ok(Some(nearest)) => {
            PyKeyError::new_err(format!("there is no {what} {key}; the nearest is {nearest}"))
        }
        _ => PyKeyError::new_err(format!("there is no {what} {key}")),
    }
}

/// Parses a name that serde knows. The error has the argument, and lists the known names.
pub fn named<T: DeserializeOwned>(argument: &str, what: &str, name: &str) -> PyResult<T> {
    T::deserialize(name.into_deserializer()).map_err(|cause: serde::de::value::Error| {
        let cause = cause.to_string();
        let known = cause.split_once("expected ").map_or(&*cause, |(_, known)| known);
        error(format!("{argument}: there is no {what} {name}; name {known}"))
    })
}
