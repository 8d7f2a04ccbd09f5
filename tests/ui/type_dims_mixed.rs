tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, _, 784>) -> R::Object {
            x
        }
    }
}

fn main() {}
