//! Writes the report's files completely or not at all.

use crate::output::{parent, persist, temporary};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    pub page: PathBuf,
    pub json: PathBuf,
}

impl Files {
    /// Returns the paths for `out`: a directory, or the path of a page with the extension `html`.
    /// The file with the figures is next to the page.
    pub fn at(out: &Path) -> Files {
        if out.extension().is_some_and(|extension| extension == "html") {
            return Files { page: out.to_path_buf(), json: out.with_extension("json") };
        }
        Files { page: out.join("report.html"), json: out.join("report.json") }
    }

    /// Checks that both files can be written, to report an error before a run that takes minutes.
    /// Removes the folders that it makes for that: a run that ends early, even by a kill, leaves
    /// nothing.
    pub fn prepare(&self) -> io::Result<()> {
        if self.page.is_dir() || self.json.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let folder = parent(&self.page);
        let new: Vec<&Path> = folder.ancestors().take_while(|it| !it.exists()).collect();
        let checked = fs::create_dir_all(folder).and_then(|()| temporary(folder).map(drop));
        new.into_iter().for_each(|it| drop(fs::remove_dir(it)));
        checked
    }

    /// Writes both files. Each is written under another name and renamed when it is complete.
    pub fn write(&self, page: &str, json: &str) -> io::Result<()> {
        fs::create_dir_all(parent(&self.page))?;
        for (path, content) in [(&self.json, json), (&self.page, page)] {
            let mut file = temporary(parent(path))?;
            file.write_all(content.as_bytes())?;
            persist(file, path)?;
        }
        Ok(())
    }
}
