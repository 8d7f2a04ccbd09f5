tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4, 8>, w: R::Tensor<f32, 5, 8>) -> R::Object {
            R::concat((x, w), axis = 1)
        }
    }
}

fn main() {}
