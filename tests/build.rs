//! Compiles the modules that `it/generated.rs` runs.

fn main() {
    tvm_build::Build::new()
        .ndarray()
        .tvmscript("rows", "modules/rows.tvm")
        .tvmscript("pair", "modules/pair.tvm")
        .compile();
}
