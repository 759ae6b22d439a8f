//! Machines that can be changed and saved.

use crate::errors::{error, unknown_key, write};
use pyo3::prelude::*;
use std::path::PathBuf;
use tickless_lab::machines;
use tickless_machine::machines::FILES;
use tickless_machine::size::sized;
use tickless_machine::spec::{Origin, Parameter, Spec};

/// A simulated machine.
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

    #[getter]
    fn name(&self) -> &str {
        &self.spec.name
    }

    #[setter]
    fn set_name(&mut self, name: String) {
        self.spec.name = name;
    }

    #[getter]
    fn about(&self) -> &str {
        &self.spec.about
    }

    #[getter]
    fn cpus(&self) -> u32 {
        self.spec.costs().topology.cpus().into()
    }

    fn keys(&self) -> Vec<String> {
        self.spec.parameters().map(|(key, _)| key.to_string()).collect()
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

    fn sized(&self, cpus: u16) -> Machine {
        Machine { spec: sized(&self.spec, cpus).spec }
    }

    fn save(&self, path: PathBuf) -> PyResult<()> {
        write(path, &self.spec.to_toml())
    }

    fn to_toml(&self) -> String {
        self.spec.to_toml()
    }

    fn __repr__(&self) -> String {
        format!("<tickless.Machine {:?}, {} CPUs>", self.spec.name, self.cpus())
    }
}
