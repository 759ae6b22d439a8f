//! Results as Arrow, by the PyCapsule interface: polars, pyarrow, pandas and DuckDB read them
//! without a copy, and none of them is required.

use crate::errors::{error, unknown_key};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
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
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(values) = self.batch.column_by_name(column) else {
            return Err(unknown_key(py, "column", column, &self.columns()));
        };
        let list = PyList::empty(py);
        for row in 0..values.len() {
            list.append(value(py, values, row)?)?;
        }
        Ok(list)
    }

    /// All rows as dictionaries.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for row in 0..self.batch.num_rows() {
            let entry = PyDict::new(py);
            for (name, values) in self.columns().iter().zip(self.batch.columns()) {
                entry.set_item(name, value(py, values, row)?)?;
            }
            list.append(entry)?;
        }
        Ok(list)
    }
}

fn value<'py>(
    py: Python<'py>,
    values: &ArrayRef,
    row: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if values.is_null(row) {
        return Ok(None);
    }
    let value = match values.data_type() {
        DataType::Int64 => {
            values.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Float64 => {
            values.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any()
        }
        _ => values.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
    };
    Ok(Some(value))
}

impl Table {
    /// A table of columns of one length.
    pub fn of(columns: Vec<(&'static str, ArrayRef)>) -> PyResult<Table> {
        let field =
            |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        Ok(Table { batch: RecordBatch::try_new(Arc::new(schema), arrays).map_err(error)? })
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
