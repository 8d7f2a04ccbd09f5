//! Compiles the modules that `it/generated.rs` runs.

fn main() {
    tvm_build::Build::new()
        .ndarray()
        .tvmscript("found", "modules/found.tvm")
        .tvmscript("rows", "modules/rows.tvm")
        .tvmscript("lists", "modules/lists.tvm")
        .tvmscript("values", "modules/values.tvm")
        .tvmscript("pair", "modules/pair.tvm")
        .compile();
}
