//! Whether what an earlier build script made of a module still holds.

use super::Build;
use crate::compile::Options;
use crate::rust_source::Found;
use crate::toolchain::{Toolchain, io_error};
use std::path::PathBuf;
use tvm_ir::diag::Diag;

/// All that the outputs of a module depend on, as text, and where it is kept beside them.
pub(super) struct Stamp {
    text: String,
    file: PathBuf,
    outputs: [PathBuf; 2],
}

impl Stamp {
    pub(super) fn new(build: &Build, options: &Options, found: &Found, toolchain: &Toolchain) -> Stamp {
        // The compiler is part of the build script.
        let exe = std::env::current_exe().and_then(std::fs::metadata);
        let exe = exe.map(|m| (m.len(), m.modified().ok())).ok();
        let env = ["CC", "CFLAGS", "AR"].map(|name| std::env::var(name).ok());
        let targets: Vec<&str> = options.targets.iter().map(|t| t.name.as_str()).collect();
        let pipeline: Vec<String> = options.pipeline.iter().map(|s| format!("{} {:?}", s.pass.name, s.args)).collect();
        let text = format!(
            "{:#018x}\n{exe:?}\n{env:?}\n{toolchain:?}\n{targets:?}\n{pipeline:?}\n{:?}\n{:?}\n{:?}\n{:?}\n",
            found.checked.fingerprint,
            (&options.prefix, options.files, options.vm, options.arena_limit, options.weights_limit),
            (build.without_heap, build.without_weights, build.ndarray, &build.bounds),
            options.externals,
            found.checked.docs,
        );
        let (name, folder) = (&options.name, &toolchain.out_dir);
        let outputs = [folder.join(format!("{name}.rs")), folder.join(format!("lib{}kernels.a", options.prefix))];
        Stamp { text, file: folder.join(format!("{name}.stamp")), outputs }
    }

    /// Whether the outputs are there, made of the same.
    pub(super) fn is_current(&self) -> bool {
        let same = std::fs::read(&self.file).is_ok_and(|old| old == self.text.as_bytes());
        same && self.outputs.iter().all(|f| f.is_file())
    }

    /// Notes what the outputs were made of; called when they are complete.
    pub(super) fn write(&self) -> Result<(), Diag> {
        std::fs::write(&self.file, &self.text).map_err(|e| io_error("write", &self.file, &e))
    }
}
