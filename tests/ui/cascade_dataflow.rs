tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            R::dataflo({
                let h = R::nn::relu(x);
                R::output(h);
            });
            R::matmul(h, w)
        }
    }
}

fn main() {}
