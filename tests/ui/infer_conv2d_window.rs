tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 1, 3, 4, 4>, k: R::Tensor<f32, 8, 3, 7, 7>) -> R::Object {
            R::nn::conv2d(x, k)
        }
    }
}

fn main() {}
