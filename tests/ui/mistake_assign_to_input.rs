tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 256, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            x = R::nn::relu(x);
            x += w;
            x
        }
    }
}

fn main() {}
