//! Files that are no ONNX models, as they are met where a model should be: what each is, and the way to a model.

use std::path::Path;

/// Beginnings of files by which their format is known: bytes, where they stand, what the file is, what to do.
const FORMATS: &[(&[u8], usize, &str, &str)] = &[
    (b"version https://git-lfs.", 0, "it is a pointer of Git LFS, not the file itself", "run `git lfs pull`"),
    (b"PK\x03\x04", 0, "it is a ZIP archive, as torch.save writes", EXPORT),
    (b"\x80\x02", 0, "it is a Python pickle, as old versions of torch.save write", EXPORT),
    (b"\x89HDF", 0, "it is an HDF5 file, as Keras writes", "convert it to ONNX, with tf2onnx for example"),
    (b"TFL3", 4, "it is a TensorFlow Lite model", "convert it to ONNX, with tf2onnx for example"),
    (b"GGUF", 0, "it is a GGUF file, which holds weights and no graph", "export the model it was made of to ONNX"),
    (b"\x1f\x8b", 0, "it is compressed with gzip", "decompress it"),
    (b"<!DOCTYPE", 0, "it is a page of HTML, as a failed download leaves", DOWNLOAD),
    (b"<html", 0, "it is a page of HTML, as a failed download leaves", DOWNLOAD),
];
const EXPORT: &str = "export the model to ONNX: torch.onnx.export(model, example_inputs, \"model.onnx\")";
const DOWNLOAD: &str = "download the model again, as the file and not as the page about it";

/// What a file is that is no ONNX model, and what to do; `None` if that is not known.
pub(super) fn recognize(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    if bytes.is_empty() {
        return Some(("it is empty", DOWNLOAD));
    }
    let found = FORMATS.iter().find(|(start, at, ..)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(start)));
    let safetensors = || bytes.get(8) == Some(&b'{') && bytes.get(4..8) == Some(&[0; 4]);
    match found {
        Some((_, _, what, help)) => Some((what, help)),
        None if safetensors() => Some((
            "it is a safetensors file, which holds weights and no graph",
            "export the model they belong to to ONNX",
        )),
        None => None,
    }
}

/// What to do about a file that is not there: the models beside where it should be, and what the path is relative to.
pub(super) fn missing(path: &Path) -> String {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut there: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(1000) {
        let found = entry.path();
        if found.extension().is_some_and(|e| e == "onnx") {
            there.push(found.strip_prefix(".").unwrap_or(&found).display().to_string());
        }
    }
    there.sort();
    there.truncate(5);
    let beside = if there.is_empty() { String::new() } else { format!("; there is {}", there.join(", ")) };
    let here = std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default();
    if path.is_absolute() {
        format!("check the path{beside}")
    } else {
        format!("the path is relative to {here}{beside}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_stands_where_a_model_should() {
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n";
        assert_eq!(recognize(pointer).map(|r| r.1), Some("run `git lfs pull`"));
        assert!(recognize(b"PK\x03\x04archive/data.pkl").is_some_and(|r| r.1.contains("torch.onnx.export")));
        assert!(recognize(b"\x10\0\0\0\0\0\0\0{\"w\":{}}").is_some_and(|r| r.0.contains("safetensors")));
        assert!(recognize(b"\x1c\0\0\0TFL3").is_some_and(|r| r.0.contains("Lite")));
        assert!(recognize(b"").is_some_and(|r| r.0.contains("empty")));
        assert_eq!(recognize(b"\x08\x07\x12\x07pytorch"), None);
    }
}
