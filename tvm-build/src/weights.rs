//! Constants as one blob: equal ones once, each at a multiple of 64 bytes. The blob is written beside the sources and
//! enters the program through an assembler's `.incbin`; it is never text, and never copied in memory.

use crate::codegen::SourceFile;
use crate::toolchain::io_error;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::diag::Diag;
use tvm_ir::span::Span;

/// Alignment of every constant in the blob.
pub const ALIGN: u64 = 64;

/// Constants with their places in the blob.
#[derive(Default)]
pub struct Weights {
    /// Distinct contents in the order they were added, with their offsets.
    parts: Vec<(u64, Bytes)>,
    /// Indices into `parts` by length and a sample of the bytes: what may be equal.
    similar: BTreeMap<(usize, Vec<u8>), Vec<usize>>,
    len: u64,
}

impl Weights {
    /// No constants.
    pub fn new() -> Weights {
        Weights::default()
    }

    /// The byte offset of a constant; one with the same bytes has the same offset. Errors: more bytes than can be counted.
    pub fn add(&mut self, constant: &Constant) -> Result<u64, Diag> {
        let data = constant.data();
        if data.is_empty() {
            return Ok(0);
        }
        let candidates = self.similar.entry((data.len(), sample(data))).or_default();
        let known = candidates.iter().filter_map(|i| self.parts.get(*i)).find(|(_, p)| {
            // The same memory need not be compared.
            p.as_ptr() == data.as_ptr() || p[..] == data[..]
        });
        if let Some((offset, _)) = known {
            return Ok(*offset);
        }
        let too_large = || Diag::error(Span::NONE, "the weights have more bytes than can be counted");
        let offset = self.len.checked_next_multiple_of(ALIGN).ok_or_else(too_large)?;
        let bytes = u64::try_from(data.len()).map_err(|_| too_large())?;
        self.len = offset.checked_add(bytes).ok_or_else(too_large)?;
        candidates.push(self.parts.len());
        self.parts.push((offset, data.clone()));
        Ok(offset)
    }

    /// Bytes of the blob.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes the blob, each constant straight from where it lies.
    pub fn write(&self, path: &Path) -> Result<(), Diag> {
        let error = |e: std::io::Error| io_error("write the weights to", path, &e);
        let mut file = File::create(path).map_err(error)?;
        let mut at = 0u64;
        for (offset, data) in &self.parts {
            let padding = [0u8; ALIGN as usize];
            let gap = usize::try_from(offset - at).unwrap_or(0).min(padding.len());
            file.write_all(padding.get(..gap).unwrap_or(&[])).map_err(error)?;
            file.write_all(data).map_err(error)?;
            at = offset + u64::try_from(data.len()).unwrap_or(0);
        }
        file.flush().map_err(error)
    }

    /// A copy of the blob in memory, for small programs of tests.
    #[cfg(test)]
    pub(crate) fn to_aligned(&self) -> tvm_runtime::AlignedBytes {
        let mut out = tvm_runtime::AlignedBytes::zeroed(usize::try_from(self.len).unwrap());
        for (offset, data) in &self.parts {
            let start = usize::try_from(*offset).unwrap();
            out.as_mut_slice()[start..start + data.len()].copy_from_slice(data);
        }
        out
    }
}

/// Some bytes of the beginning, the middle and the end: enough to tell most weights apart without reading them.
fn sample(data: &[u8]) -> Vec<u8> {
    let n = data.len();
    let mut out = Vec::with_capacity(48);
    for start in [0, n / 2, n.saturating_sub(16)] {
        out.extend_from_slice(data.get(start..n.min(start + 16)).unwrap_or(&[]));
    }
    out
}

/// Weights of more bytes lie apart from the rest of the program, where that can be: code and data that refer to each other
/// must not be further than 2 GiB from each other.
const LARGE: u64 = 1 << 28;

/// Most bytes of weights that can be linked into a program for this triple: with them its parts are still near each other.
pub fn most_linked(triple: &str) -> u64 {
    if has_large_sections(triple) { u64::MAX } else { (1 << 31) - LARGE }
}

/// Whether sections can lie anywhere: x86-64's `SHF_X86_64_LARGE` of ELF.
fn has_large_sections(triple: &str) -> bool {
    triple.starts_with("x86_64") && !["apple", "windows", "uefi"].iter().any(|other| triple.contains(other))
}

/// An assembler file that defines `symbol` as the content of `file`, which has so many bytes and lies in the folder where the
/// assembler runs.
pub fn assembler(triple: &str, symbol: &str, stem: &str, file: &str, bytes: u64) -> SourceFile {
    let (section, flags) =
        if bytes > LARGE && has_large_sections(triple) { (".lrodata", "al") } else { (".rodata", "a") };
    let text = if triple.contains("apple") {
        format!(
            "    .section __TEXT,__const\n    .p2align 6\n    .globl _{symbol}\n_{symbol}:\n    .incbin \"{file}\"\n"
        )
    } else if triple.contains("windows") || triple.contains("uefi") {
        format!("    .section .rdata,\"dr\"\n    .p2align 6\n    .globl {symbol}\n{symbol}:\n    .incbin \"{file}\"\n")
    } else {
        format!(
            "    .section {section}.{symbol},\"{flags}\",%progbits\n    .p2align 6\n    .globl {symbol}\n    \
             .hidden {symbol}\n    .type {symbol},%object\n{symbol}:\n    .incbin \"{file}\"\n    \
             .size {symbol}, . - {symbol}\n    .section .note.GNU-stack,\"\",%progbits\n"
        )
    };
    SourceFile { name: format!("{stem}.s"), text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::{Toolchain, Unit};
    use tvm_ir::dtype::DType;

    fn constant(bytes: Vec<u8>) -> Constant {
        Constant::new(DType::U8, vec![bytes.len() as u64], Bytes::new(bytes)).unwrap()
    }

    #[test]
    fn equal_contents_once_and_aligned() {
        let mut w = Weights::new();
        let mut long = vec![7u8; 1000];
        let a = w.add(&constant(long.clone())).unwrap();
        long[300] = 8; // outside of the sample
        let b = w.add(&constant(long.clone())).unwrap();
        let c = w.add(&constant(vec![1, 2, 3])).unwrap();
        assert_eq!((a, b, c), (0, 1024, 2048));
        assert_eq!(w.add(&constant(long.clone())).unwrap(), b);
        assert_eq!(w.add(&constant(Vec::new())).unwrap(), 0);
        assert_eq!(w.len(), 2051);
        let dir = std::env::temp_dir().join(format!("tvm-weights-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        w.write(&dir.join("w.bin")).unwrap();
        let written = std::fs::read(dir.join("w.bin")).unwrap();
        assert_eq!(written, w.to_aligned().as_slice());
        assert_eq!(&written[1024..2024], &long[..]);
        // Enters an object by the assembler.
        let t = Toolchain::for_host(&dir);
        // The second one as if there were more of it.
        for bytes in [2051, LARGE + 1] {
            let s = assembler(&t.triple, "net_weights", "net_weights", "w.bin", bytes);
            t.write_sources(&[s]).unwrap();
            let unit = Unit { file: "net_weights.s".into(), flags: Vec::new() };
            let lib = t.static_library("net", std::slice::from_ref(&unit)).unwrap();
            assert!(std::fs::metadata(lib).unwrap().len() > 2051);
            t.shared_library("net", &[unit]).unwrap();
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn every_object_format() {
        let text = |triple, bytes| assembler(triple, "w", "w", "w.bin", bytes).text;
        assert!(text("aarch64-apple-darwin", 1).contains("_w:\n"));
        assert!(text("x86_64-pc-windows-gnu", 1).contains(".rdata"));
        assert!(text("armv7-unknown-linux-gnueabihf", 1).contains(".rodata.w,\"a\",%progbits"));
        assert!(text("x86_64-unknown-linux-gnu", 1).contains(".rodata.w,\"a\",%progbits"));
        assert!(text("x86_64-unknown-linux-gnu", 1 << 31).contains(".lrodata.w,\"al\",%progbits"));
        assert!(text("aarch64-unknown-linux-gnu", 1 << 31).contains(".rodata.w,\"a\",%progbits"));
    }

    #[test]
    fn what_can_be_linked() {
        assert_eq!(most_linked("x86_64-unknown-linux-gnu"), u64::MAX);
        for near in ["x86_64-apple-darwin", "x86_64-pc-windows-gnu", "aarch64-unknown-linux-gnu"] {
            assert!((1 << 30..1 << 31).contains(&most_linked(near)), "{near}");
        }
    }
}
