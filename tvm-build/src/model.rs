//! Reading a model of any format, by the ending of its file's name.

use crate::import::onnx;
use crate::toolchain::io_error;
use std::io::Read;
use std::path::{Path, PathBuf};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::render::render_all;
use tvm_ir::span::{SourceMap, Span};
use tvm_ir::syntax::{ParseOptions, parse_module};

/// A model and the files it was read from.
#[derive(Clone, Debug)]
pub struct Model {
    /// The module.
    pub module: IRModule,
    /// Every file that was read, the model's own first.
    pub files: Vec<PathBuf>,
    /// Initializers that became parameters; see [`onnx::Loaded::overridable`].
    pub overridable: Vec<String>,
    /// What does not stop a build, and should be seen.
    pub warnings: Diags,
}

/// Reads a model: `.onnx`, or TVMScript text in `.py`, `.tvm` or `.txt`; `-` is TVMScript text on the standard input. Errors are
/// all that is wrong, with places in `sources`. Warnings are lost: see [`load_with`].
pub fn load(path: &Path, sources: &mut SourceMap) -> Result<IRModule, Diags> {
    load_with(path, onnx::ImportOptions::default(), sources).map(|m| m.module)
}

/// As [`load`], with options for ONNX files, and says which files were read.
pub fn load_with(path: &Path, onnx: onnx::ImportOptions, sources: &mut SourceMap) -> Result<Model, Diags> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|e| io_error("read", Path::new("the standard input"), &e))?;
        let module = parse_module(sources, "<stdin>", &text, ParseOptions::default())?;
        return Ok(Model { module, files: Vec::new(), overridable: Vec::new(), warnings: Diags::new() });
    }
    match path.extension().and_then(|e| e.to_str()) {
        Some("onnx") => {
            let loaded = onnx::load(path, onnx, sources)?;
            let files = std::iter::once(path.to_owned()).chain(loaded.files).collect();
            Ok(Model { module: loaded.module, files, overridable: loaded.overridable, warnings: loaded.warnings })
        }
        Some("py" | "tvm" | "txt") => {
            let text = read_text(path)?;
            let module = parse_module(sources, &path.display().to_string(), &text, ParseOptions::default())?;
            Ok(Model { module, files: vec![path.to_owned()], overridable: Vec::new(), warnings: Diags::new() })
        }
        ending => Err(Diag::error(Span::NONE, format!("the format of {} is not known", path.display()))
            .help(match ending {
                Some("pt" | "pth" | "pt2" | "ckpt" | "safetensors" | "bin") => {
                    "export the model to ONNX: torch.onnx.export(model, example_inputs, \"model.onnx\")"
                }
                Some("h5" | "keras" | "pb" | "tflite") => "convert the model to ONNX, with tf2onnx for example",
                _ => "models end in .onnx, TVMScript text in .py, .tvm or .txt",
            })
            .into()),
    }
}

/// Reads TVMScript text; `name` is what messages call it. The error is the text of all that is wrong, with carets.
pub fn parse(name: &str, text: &str) -> Result<IRModule, String> {
    let mut sources = SourceMap::default();
    parse_module(&mut sources, name, text, ParseOptions::default()).map_err(|diags| render_all(&diags, &sources))
}

/// Most bytes of TVMScript text that are read.
const MAX_TEXT: u64 = 64 << 20;

fn read_text(path: &Path) -> Result<String, Diag> {
    let size = std::fs::metadata(path).map_err(|e| io_error("read", path, &e))?.len();
    if size > MAX_TEXT {
        let message = format!("{} has {size} bytes, more than the {MAX_TEXT} that text may have", path.display());
        return Err(Diag::error(Span::NONE, message));
    }
    std::fs::read_to_string(path).map_err(|e| io_error("read", path, &e))
}
