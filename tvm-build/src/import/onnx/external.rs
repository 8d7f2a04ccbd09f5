//! External data: tensors whose bytes lie in another file of the model's folder.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use super::foreign;
use super::limits::Limits;
use super::proto::StringStringEntryProto;
use crate::import::file;

/// The folder of a model and the files of it that were opened; each is opened once.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// `None` for a model that was not read from a file: it can have no external data.
    path: Option<PathBuf>,
    files: BTreeMap<PathBuf, Bytes>,
}

impl Folder {
    /// The folder that holds the file `model`.
    pub(super) fn of_model(model: &Path) -> Folder {
        let path = match model.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Folder { path: Some(path), files: BTreeMap::new() }
    }

    /// The files that were read, for a build to watch.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// The bytes that the entries of a tensor's `external_data` name.
    pub(super) fn read(&mut self, entries: &[StringStringEntryProto], limits: &Limits) -> Result<Bytes, String> {
        let mut location = None;
        let mut offset = 0;
        let mut length = None;
        for entry in entries {
            match entry.key.as_str() {
                "location" => location = Some(entry.value.as_str()),
                "offset" => offset = number(entry)?,
                "length" => length = Some(number(entry)?),
                // A digest that tools may check; the sizes are checked here whatever it says.
                "checksum" => {}
                key => return Err(format!("external data has an unknown entry '{key}'")),
            }
        }
        let location = location.ok_or("external data has no 'location'")?;
        let file = self.open(location, limits)?;
        let size = file.len() as u64;
        let end = match length {
            Some(length) => offset.checked_add(length),
            None => Some(size),
        };
        let range = match end {
            Some(end) if offset <= end && end <= size => usize::try_from(offset).ok().zip(usize::try_from(end).ok()),
            _ => None,
        };
        let Some((start, end)) = range else {
            let length = length.map_or("the rest".to_owned(), |n| format!("{n} bytes"));
            let foreign = foreign::recognize(&file).map_or(String::new(), |(what, help)| format!("; {what}: {help}"));
            return Err(format!(
                "external data wants {length} at offset {offset} of '{location}', which holds {size} bytes{foreign}"
            ));
        };
        Ok(file.slice(start..end))
    }

    fn open(&mut self, location: &str, limits: &Limits) -> Result<Bytes, String> {
        let Some(folder) = &self.path else {
            return Err(format!("external data in '{location}', but the model was not read from a file"));
        };
        // A backslash separates on some systems only; what a model means must not depend on the system.
        let inside = !location.is_empty()
            && !location.contains(['\\', '\0'])
            && Path::new(location).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if !inside {
            return Err(format!("external data location '{location}' is not a path inside the model's folder"));
        }
        let path = folder.join(location);
        if let Some(bytes) = self.files.get(&path) {
            return Ok(bytes.clone());
        }
        let real = |path: &Path| {
            std::fs::canonicalize(path).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => format!(
                    "external data file '{location}' is not there; it holds weights and belongs into the model's folder, {}",
                    folder.display()
                ),
                _ => format!("external data file '{location}' cannot be opened: {e}"),
            })
        };
        if !real(&path)?.starts_with(real(folder)?) {
            return Err(format!("external data location '{location}' leads out of the model's folder through a link"));
        }
        let bytes = file::read(&path, limits.file_bytes).map_err(|e| format!("external data file '{location}' {e}"))?;
        self.files.insert(path, bytes.clone());
        Ok(bytes)
    }
}

fn number(entry: &StringStringEntryProto) -> Result<u64, String> {
    entry
        .value
        .parse()
        .map_err(|_| format!("external data: '{}' is '{}', not a count of bytes", entry.key, entry.value))
}
