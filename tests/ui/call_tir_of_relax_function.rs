tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            R::call_tir::<R::Tensor<f32, N, 784>>(helper, (x,))
        }

        #[R::function]
        fn helper(x: R::Tensor<f32, M, 784>) -> R::Tensor<f32, M, 784> {
            x
        }
    }
}

fn main() {}
