//! Compiles the module of `src/main.rs`, and takes its weights out of the trained ONNX model.

use std::path::{Path, PathBuf};
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::{Dialect, print_with_constants};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tvm_build::Build::new().rust_source("src/main.rs").compile();

    let model = "../digits/models/mlp.onnx";
    println!("cargo::rerun-if-changed={model}");
    let trained = tvm_build::model::load(Path::new(model), &mut SourceMap::default())?;
    let (_, weights) = print_with_constants(&trained, Dialect::Tutorial);
    let out_dir = PathBuf::from(std::env::var("OUT_DIR")?);
    for (name, constant) in ["fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"].iter().zip(&weights) {
        std::fs::write(out_dir.join(format!("{name}.f32")), constant.data())?;
    }
    Ok(())
}
