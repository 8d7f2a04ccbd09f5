tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        #[R::func_attr(global_symbol = "other")]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            x
        }
    }
}

fn main() {}
