tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 1, 3, 8, 8>, g: R::Tensor<f32, 4>) -> R::Object {
            R::nn::batch_norm(x, g, g, g, g, axis = 1)
        }
    }
}

fn main() {}
