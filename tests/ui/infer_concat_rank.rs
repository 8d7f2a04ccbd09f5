tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4, 8>, b: R::Tensor<f32, 8>) -> R::Object {
            R::concat((x, b), axis = 0)
        }
    }
}

fn main() {}
