//! Machines that can be changed and saved.

use crate::errors::{error, unknown_key, write};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyType};
use std::path::PathBuf;
use tickless_lab::machines;
use tickless_machine::machines::FILES;
use tickless_machine::size::{CPUS_MAX, exactly};
use tickless_machine::spec::{Origin, Parameter, Spec};

/// A simulated machine: a name from `machine_names()`, or a file. It maps the names of its numbers
/// to their values, which can be changed, and can be copied and pickled.
#[pyclass(module = "tickless", from_py_object)]
#[derive(Clone)]
pub struct Machine {
    pub spec: Spec,
}

/// The names of the machines that come with the program.
#[pyfunction]
pub fn machine_names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

#[pymethods]
impl Machine {
    #[new]
    fn new(name: &str) -> PyResult<Machine> {
        Ok(Machine { spec: machines::find(name).map_err(error)? })
    }

    /// Its name, which rows of results have.
    #[getter]
    fn name(&self) -> &str {
        &self.spec.name
    }

    #[setter]
    fn set_name(&mut self, name: String) {
        self.spec.name = name;
    }

    /// What it is, in a sentence.
    #[getter]
    fn about(&self) -> &str {
        &self.spec.about
    }

    /// The number of its CPUs.
    #[getter]
    fn cpus(&self) -> u32 {
        self.spec.costs().topology.cpus().into()
    }

    /// The names of its numbers. Times end in their unit.
    fn keys(&self) -> Vec<String> {
        self.spec.parameters().map(|(key, _)| key.to_string()).collect()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys().into_pyobject(py)?.try_iter()
    }

    /// What pickling and copying make the machine of again.
    fn __reduce__<'py>(
        slf: &Bound<'py, Machine>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, String))> {
        let Machine { spec } = &*slf.borrow();
        Ok((slf.get_type().getattr("_of_toml")?, (spec.file.clone(), spec.to_toml())))
    }

    #[classmethod]
    fn _of_toml(_: &Bound<'_, PyType>, file: &str, text: &str) -> PyResult<Machine> {
        Ok(Machine { spec: Spec::parse(file, text).map_err(error)? })
    }

    fn __getitem__(&self, py: Python<'_>, key: &str) -> PyResult<f64> {
        let found = self.spec.parameters().find(|(known, _)| *known == key);
        let value = found.map(|(_, parameter)| parameter.value);
        value.ok_or_else(|| unknown_key(py, "number", key, &self.keys()))
    }

    /// Sets a number. A value that a machine's file could not have is refused.
    fn __setitem__(&mut self, py: Python<'_>, key: &str, value: f64) -> PyResult<()> {
        self.__getitem__(py, key)?;
        let origin = Origin::Source("set from Python".to_string());
        let changed = self.spec.with_parameter(key, Parameter { value, origin });
        Spec::parse(&self.spec.file, &changed.to_toml()).map_err(error)?;
        self.spec = changed;
        Ok(())
    }

    /// A machine like this one with another number of CPUs. Cores and sockets stay whole.
    fn sized(&self, cpus: i64) -> PyResult<Machine> {
        let wrong = || format!("cpus is {cpus}, but must be from 1 to {CPUS_MAX}");
        let count = u16::try_from(cpus).map_err(|_| PyOverflowError::new_err(wrong()))?;
        Ok(Machine { spec: exactly(&self.spec, count).map_err(error)? })
    }

    /// Writes the machine's file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write(path, &self.spec.to_toml())
    }

    /// The text of the machine's file.
    fn to_toml(&self) -> String {
        self.spec.to_toml()
    }

    fn __repr__(&self) -> String {
        format!("<tickless.Machine {:?}, {} CPUs>", self.spec.name, self.cpus())
    }
}
