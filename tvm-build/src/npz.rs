//! NumPy's `.npz` archives: named arrays in a zip file.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::npy;
pub use crate::npy::{Array, Content};

/// Bytes that the arrays of an archive may take together, unpacked.
const MAX_BYTES: u64 = 1 << 36;

/// Reads the arrays of an archive, in its order, stored or deflated. The error is a sentence that names the
/// array at fault; an archive that unpacks to more than 64 GiB is refused.
pub fn read(path: &Path) -> Result<Vec<(String, Content)>, String> {
    let file = File::open(path).map_err(|e| format!("{} cannot be opened: {e}", path.display()))?;
    let mut archive = ZipArchive::new(file).map_err(|e| format!("{} is not an .npz archive: {e}", path.display()))?;
    let mut arrays: Vec<(String, Content)> = Vec::new();
    let mut left = MAX_BYTES;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|e| format!("{}: {e}", path.display()))?;
        let Some(name) = entry.name().strip_suffix(".npy").map(str::to_owned) else {
            return Err(format!("{}: '{}' is not an array", path.display(), entry.name()));
        };
        let at = |e: &dyn std::fmt::Display| format!("{}: array '{name}': {e}", path.display());
        let mut bytes = Vec::new();
        entry.take(left + 1).read_to_end(&mut bytes).map_err(|e| at(&e))?;
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| at(&"the archive unpacks to too many bytes"))?;
        let array = npy::read_any(&bytes).map_err(|e| at(&e))?;
        if arrays.iter().any(|(other, _)| *other == name) {
            return Err(at(&"is there twice"));
        }
        arrays.push((name, array));
    }
    Ok(arrays)
}

/// Writes arrays to an archive, stored; the same arrays give the same bytes. The error is a sentence.
pub fn write<'a>(path: &Path, arrays: impl IntoIterator<Item = (&'a str, &'a Content)>) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("{} cannot be written: {e}", path.display());
    let file = File::create(path).map_err(|e| failed(&e))?;
    let mut archive = ZipWriter::new(BufWriter::new(file));
    for (name, array) in arrays {
        let bytes = npy::write_any(array).map_err(|e| failed(&format!("array '{name}': {e}")))?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes.len() as u64 >= u64::from(u32::MAX));
        archive.start_file(format!("{name}.npy"), options).map_err(|e| failed(&e))?;
        archive.write_all(&bytes).map_err(|e| failed(&e))?;
    }
    archive.finish().map_err(|e| failed(&e))?.flush().map_err(|e| failed(&e))
}

#[cfg(test)]
mod tests {
    use tvm_ir::dtype::DType;

    use super::*;

    #[test]
    fn round_trip_and_determinism() {
        let folder = std::env::temp_dir().join(format!("tvm-build-npz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let x = Content::Numbers(Array { dtype: DType::F32, shape: vec![2, 3], data: (0..24).collect() });
        let n = Content::Strings(npy::Strings { shape: vec![1], strings: vec!["ä".into()] });
        let (a, b) = (folder.join("a.npz"), folder.join("b.npz"));
        for path in [&a, &b] {
            write(path, [("x", &x), ("names/n", &n)]).unwrap();
        }
        assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
        assert_eq!(read(&a).unwrap(), [("x".to_owned(), x), ("names/n".to_owned(), n)]);
        let bytes = std::fs::read(&a).unwrap();
        std::fs::write(&b, &bytes[..bytes.len() / 2]).unwrap();
        assert!(read(&b).unwrap_err().contains("is not an .npz archive"));
        assert!(read(&folder.join("absent")).unwrap_err().contains("cannot be opened"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn reads_deflated_archives() {
        let array = Array { dtype: DType::U8, shape: vec![1000], data: vec![3; 1000] };
        let path = std::env::temp_dir().join(format!("tvm-build-npz-{}.npz", std::process::id()));
        let mut archive = ZipWriter::new(File::create(&path).unwrap());
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        archive.start_file("x.npy", options).unwrap();
        archive.write_all(&npy::write(&array).unwrap()).unwrap();
        archive.finish().unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < 600);
        assert_eq!(read(&path).unwrap(), [("x".to_owned(), Content::Numbers(array))]);
        std::fs::remove_file(&path).unwrap();
    }
}
