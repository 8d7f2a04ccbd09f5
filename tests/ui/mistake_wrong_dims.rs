tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w1: R::Tensor<f32, 784, 256>, b1: R::Tensor<f32, 256>, w2: R::Tensor<f32, 128, 10>) -> R::Tensor<f32, N, 10> {
            let h = R::matmul(x, w1) + b1;
            R::matmul(R::nn::relu(h), w2)
        }
    }
}

fn main() {}
