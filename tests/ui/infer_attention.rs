tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(q: R::Tensor<f32, 1, 8, 4, 16>, k: R::Tensor<f32, 1, 8, 4, 32>, v: R::Tensor<f32, 1, 8, 4, 32>) -> R::Object {
            R::nn::attention(q, k, v)
        }
    }
}

fn main() {}
