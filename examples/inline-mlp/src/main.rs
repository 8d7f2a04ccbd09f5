//! The multilayer perceptron of TVM's tutorial, written in this file: `cargo build` compiles it to native code.
//!
//! Prints the module at each stage of the compiler, then reads 200 handwritten digits with it.

use tvm_build::pipeline;
use tvm_ir::module::IRModule;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::{Dialect, ParseOptions, parse_module, print_module};
use tvm_ir::target::Target;

tvm_macros::ir_module! {
    /// Two layers: 28×28 pixels to the scores of ten digits.
    pub mod mlp {
        /// The scores of an image.
        #[R::function]
        #[R::func_attr(num_input = 1)]
        pub fn main(
            x: R::Tensor<f32, 1, 784>,
            fc1_weight: R::Tensor<f32, 256, 784>,
            fc1_bias: R::Tensor<f32, 256>,
            fc2_weight: R::Tensor<f32, 10, 256>,
            fc2_bias: R::Tensor<f32, 10>,
        ) -> R::Tensor<f32, 1, 10> {
            let hidden = R::nn::relu(R::matmul(x, R::permute_dims(fc1_weight)) + fc1_bias);
            R::matmul(hidden, R::permute_dims(fc2_weight)) + fc2_bias
        }
    }
}

/// A tensor that `build.rs` took from the trained model.
macro_rules! weights {
    ($name:literal) => {
        f32s(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".f32")))
    };
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let module = parse_module(&mut SourceMap::default(), "mlp", mlp::TVMSCRIPT, ParseOptions::default())?;
    println!("# As written, in A-normal form\n{}", print_module(&module, Dialect::Tutorial));
    println!("# After LegalizeOps\n{}", print_module(&after(&module, "LegalizeOps")?, Dialect::Tutorial));
    let zero: Vec<&str> =
        pipeline::lookup("zero").map(|p| (p.steps)()).unwrap_or_default().iter().map(|s| s.pass.name).collect();
    println!("# After the zero pipeline\n{}", print_module(&after(&module, &zero.join(","))?, Dialect::Tutorial));

    // Image and label files of NumPy: a header of 128 bytes, then the data.
    let images = &include_bytes!("../../digits/data/images.npy")[128..];
    let labels = &include_bytes!("../../digits/data/labels.npy")[128..];
    let (fc1_weight, fc1_bias) = (weights!("fc1_weight"), weights!("fc1_bias"));
    let (fc2_weight, fc2_bias) = (weights!("fc2_weight"), weights!("fc2_bias"));
    let mut net = mlp::Module::new();
    let mut right = 0;
    for (image, label) in images.chunks_exact(784).zip(labels) {
        let x: [f32; 784] = std::array::from_fn(|i| f32::from(image[i]) / 255.0);
        let scores = net.main(
            &x,
            fc1_weight.as_slice().try_into()?,
            fc1_bias.as_slice().try_into()?,
            fc2_weight.as_slice().try_into()?,
            fc2_bias.as_slice().try_into()?,
        );
        let answer = (0..10).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        right += usize::from(answer == Some(usize::from(*label)));
    }
    println!("{right} of {} digits are read right", labels.len());
    if right * 10 < labels.len() * 9 {
        return Err("fewer than nine in ten: the weights are not the model's".into());
    }
    Ok(())
}

fn after(module: &IRModule, passes: &str) -> Result<IRModule, Box<dyn std::error::Error>> {
    let mut module = module.clone();
    for step in pipeline::parse_steps(passes)? {
        step.run(&mut module, &Target::default())?;
    }
    Ok(module)
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}
