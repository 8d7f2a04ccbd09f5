tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 1, 3, 28, 28>, k: R::Tensor<f32, 8, 4, 3, 3>) -> R::Object {
            R::nn::conv2d(x, k)
        }
    }
}

fn main() {}
