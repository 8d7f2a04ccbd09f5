tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>, b: R::Tensor<f32, 256>) -> R::Tensor<f32, N, 256> {
            let h = R::matmul(x, w) + b;
            R::nn::relu(h)
        }
    }
}

fn main() {}
