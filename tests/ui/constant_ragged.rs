tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            R::constant([[1.0, 2.0], [3.0]], f32)
        }
    }
}

fn main() {}
