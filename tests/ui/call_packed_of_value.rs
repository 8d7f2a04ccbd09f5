tvm_macros::ir_module! {
    pub mod model {
        #[R::function(pure = false)]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            R::call_packed::<R::Object>(x, w)
        }
    }
}

fn main() {}
