//! The tutorial's network, to see how long the macro and the build script take when this file is edited.

tvm_macros::ir_module! {
    pub mod mlp {
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

fn main() {
    let _ = mlp::Module::new();
}
