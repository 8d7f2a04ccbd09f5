tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            R::nn::relu(helper)
        }

        #[R::function]
        fn helper(x: R::Tensor<f32, M>) -> R::Tensor<f32, M> {
            x
        }
    }
}

fn main() {}
