//! Results as Arrow, by the PyCapsule interface: polars, pyarrow, pandas and DuckDB read them
//! without a copy, and none of them is required.

use crate::errors::{error, unknown_key};
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyType};
use std::sync::Arc;
use tickless_fleet::row::Row;

/// A table of results. Reading it as Arrow copies nothing; iterating yields a dictionary for each
/// row, so `pandas.DataFrame(table)` works too. It can be copied and pickled.
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
        // The protocol lets a producer that cannot convert ignore the request.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(error)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_dicts(py)?.into_pyobject(py)?.try_iter()
    }

    /// What pickling and copying make the table of again: each column's name, type and values.
    fn __reduce__<'py>(slf: &Bound<'py, Table>) -> PyResult<(Bound<'py, PyAny>, (Columns<'py>,))> {
        let table = slf.get();
        let column = |name: String| {
            let values = table.__getitem__(slf.py(), &name)?;
            let is = table.batch.column_by_name(&name).map(|it| it.data_type().to_string());
            Ok((name, is.unwrap_or_default(), values))
        };
        let columns = table.columns().into_iter().map(column).collect::<PyResult<_>>()?;
        Ok((slf.get_type().getattr("_of_columns")?, (columns,)))
    }

    #[classmethod]
    fn _of_columns(_: &Bound<'_, PyType>, columns: Columns<'_>) -> PyResult<Table> {
        let array = |is: &str, values: Bound<'_, PyAny>| -> PyResult<ArrayRef> {
            match is {
                "Int64" => Ok(whole(values.extract::<Vec<Option<i64>>>()?.into_iter())),
                "Float64" => Ok(number(values.extract::<Vec<Option<f64>>>()?.into_iter())),
                "Utf8" => Ok(text(values.extract::<Vec<Option<String>>>()?.into_iter())),
                _ => Err(PyValueError::new_err(format!("a table has no column of {is}"))),
            }
        };
        let column = |(name, is, values): (String, String, _)| Ok((name, array(&is, values)?));
        Table::of(columns.into_iter().map(column).collect::<PyResult<_>>()?)
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

type Columns<'py> = Vec<(String, String, Bound<'py, PyAny>)>;

fn list<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    values: impl Iterator<Item = Option<T>>,
) -> PyResult<Bound<'py, PyAny>> {
    values.collect::<Vec<_>>().into_pyobject(py)
}

impl Table {
    /// A table of columns of one length.
    pub fn of<S: AsRef<str>>(columns: Vec<(S, ArrayRef)>) -> PyResult<Table> {
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        Ok(Table { batch: RecordBatch::try_from_iter_with_nullable(columns).map_err(error)? })
    }

    /// A table of rows of cells.
    pub fn of_rows(rows: &[Row]) -> PyResult<Table> {
        let text = |of: fn(&Row) -> Option<&str>| text(rows.iter().map(of));
        let whole = |of: fn(&Row) -> Option<i64>| whole(rows.iter().map(of));
        let number = |of: fn(&Row) -> Option<f64>| number(rows.iter().map(of));
        Table::of(vec![
            ("version", text(|row| Some(&row.version))),
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
