//! Results as Arrow, by the PyCapsule interface: polars, pyarrow, pandas and DuckDB read them
//! without a copy, and none of them is required.

use crate::errors::{error, unknown_key};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use std::sync::Arc;
use tickless_fleet::row::Row;

/// A table of results.
#[pyclass(frozen, module = "tickless")]
pub struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let field = Field::new_struct("", self.batch.schema().fields().clone(), false);
        let array: ArrayRef = Arc::new(StructArray::from(self.batch.clone()));
        let reader = ArrayIterator::new(vec![Ok(array)], Arc::new(field));
        to_stream_pycapsule(py, Box::new(reader), requested_schema).map_err(error)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.batch.schema().as_ref()).map_err(error)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<tickless.Table of {} rows: {}>", self.batch.num_rows(), self.columns().join(", "))
    }

    /// The columns' names.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some(values) = self.batch.column_by_name(column) else {
            return Err(unknown_key(py, "column", column, &self.columns()));
        };
        match values.data_type() {
            DataType::Int64 => list(py, values.as_primitive::<Int64Type>().iter()),
            DataType::Float64 => list(py, values.as_primitive::<Float64Type>().iter()),
            _ => list(py, values.as_string::<i32>().iter()),
        }
    }

    /// All rows as dictionaries.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let names = self.columns();
        let lists = names.iter().map(|name| self.__getitem__(py, name));
        let lists = lists.collect::<PyResult<Vec<_>>>()?;
        let dict = |row: usize| {
            let dict = PyDict::new(py);
            for (name, list) in names.iter().zip(&lists) {
                dict.set_item(name, list.get_item(row)?)?;
            }
            Ok(dict)
        };
        (0..self.batch.num_rows()).map(dict).collect()
    }
}

fn list<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    values: impl Iterator<Item = Option<T>>,
) -> PyResult<Bound<'py, PyAny>> {
    values.collect::<Vec<_>>().into_pyobject(py)
}

impl Table {
    /// A table of columns of one length.
    pub fn of(columns: Vec<(&'static str, ArrayRef)>) -> PyResult<Table> {
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        Ok(Table { batch: RecordBatch::try_from_iter_with_nullable(columns).map_err(error)? })
    }

    /// A table of rows of cells.
    pub fn of_rows(rows: &[Row]) -> PyResult<Table> {
        let text = |of: fn(&Row) -> Option<&str>| text(rows.iter().map(of));
        let whole = |of: fn(&Row) -> Option<i64>| whole(rows.iter().map(of));
        let number = |of: fn(&Row) -> Option<f64>| number(rows.iter().map(of));
        Table::of(vec![
            ("key", text(|row| Some(&row.key))),
            ("version", text(|row| Some(&row.version))),
            ("kind", text(|row| Some(&row.kind))),
            ("study", text(|row| row.study.as_deref())),
            ("machine", text(|row| row.machine.as_deref())),
            ("machine_hash", text(|row| row.machine_hash.as_deref())),
            ("trace", text(|row| row.trace.as_deref())),
            ("cpus", whole(|row| row.cpus)),
            ("policy", text(|row| row.policy.as_deref())),
            ("clock", text(|row| row.clock.as_deref())),
            ("hz", whole(|row| row.hz)),
            ("seed", whole(|row| row.seed)),
            ("figure", text(|row| row.figure.as_deref())),
            ("unit", text(|row| row.unit.as_deref())),
            ("role", text(|row| row.role.as_deref())),
            ("value", number(|row| row.value)),
            ("low", number(|row| row.low)),
            ("high", number(|row| row.high)),
            ("error", text(|row| row.error.as_deref())),
        ])
    }
}

/// A column of text.
pub fn text<S: AsRef<str>>(values: impl Iterator<Item = Option<S>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

/// A column of whole numbers.
pub fn whole(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

/// A column of numbers.
pub fn number(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}
