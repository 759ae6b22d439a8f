//! Exceptions with file, line and cause.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(tickless, TicklessError, PyException, "Why something could not be done.");

/// An exception of this text. If that begins with a file's name and a line, these are attributes.
pub fn error(what: impl ToString) -> PyErr {
    let what = what.to_string();
    let (file, line, cause) = parts(&what);
    let (file, cause) = (file.map(str::to_string), cause.to_string());
    Python::attach(|py| {
        let error = TicklessError::new_err(what.clone());
        let value = error.value(py);
        // An exception takes attributes.
        let _ = value.setattr("file", file);
        let _ = value.setattr("line", line);
        let _ = value.setattr("cause", cause);
        error
    })
}

/// `FILE:LINE: CAUSE` or `FILE: CAUSE`, where the file is one by its looks.
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
