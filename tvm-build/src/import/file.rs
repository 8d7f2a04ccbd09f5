//! Files as shared bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bytes::Bytes;

/// Below this size a file is read; above, it is mapped.
const MAP_FROM: u64 = 1 << 16;

/// The bytes of a regular file of at most `limit` bytes. Views of the result share its memory, and a large
/// file is mapped rather than read. The error is a sentence that does not name the path.
///
/// The file must not be changed while the result is in use; a build runs on inputs that stand still.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Bytes, String> {
    let about = std::fs::metadata(path).map_err(|e| format!("cannot be opened: {e}"))?;
    if !about.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut file = File::open(path).map_err(|e| format!("cannot be opened: {e}"))?;
    let size = file.metadata().map_err(|e| format!("cannot be read: {e}"))?.len();
    if size > limit {
        return Err(format!("holds {size} bytes, more than the limit of {limit} (Limits::file_bytes)"));
    }
    if size < MAP_FROM {
        let mut bytes = Vec::new();
        file.by_ref().take(MAP_FROM).read_to_end(&mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
        return Ok(Bytes::from(bytes));
    }
    Ok(Bytes::from_owner(map(&file).map_err(|e| format!("cannot be mapped: {e}"))?))
}

#[allow(unsafe_code, reason = "mapping a file is unsafe: another process could change it")]
fn map(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the mapping is private and read only, and `read` asks that nobody changes the file meanwhile.
    unsafe { memmap2::Mmap::map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_maps() {
        let folder = std::env::temp_dir().join(format!("tvm-build-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for size in [0usize, 10, 200_000] {
            let path = folder.join("data");
            let content: Vec<u8> = (0..size).map(|i| i as u8).collect();
            std::fs::write(&path, &content).unwrap();
            assert_eq!(read(&path, 1 << 20).unwrap(), content);
        }
        assert!(read(&folder.join("data"), 1000).unwrap_err().contains("limit of 1000"));
        assert!(read(&folder, 1000).unwrap_err().contains("regular file"));
        assert!(read(&folder.join("absent"), 1000).unwrap_err().contains("cannot be opened"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
