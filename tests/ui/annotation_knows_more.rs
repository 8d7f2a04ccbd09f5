tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            let y = R::call_pure_packed::<R::Tensor<f32>>("host.sort", x);
            let z: R::Tensor<f32, N, 784> = y;
            z
        }
    }
}

fn main() {}
