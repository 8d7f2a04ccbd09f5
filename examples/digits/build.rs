//! Compiles both models to native code.

fn main() {
    tvm_build::Build::new().onnx("mlp", "models/mlp.onnx").onnx("cnn", "models/cnn.onnx").compile();
}
