tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 1, 3, 8, 8>, k: R::Tensor<f32, 4, 1, 3, 3>) -> R::Object {
            R::nn::conv2d(x, k, groups = 2)
        }
    }
}

fn main() {}
