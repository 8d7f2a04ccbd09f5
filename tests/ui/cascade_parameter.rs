tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensr<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Tensor<f32, N, 256> {
            let h = R::nn::relu(x);
            let g = R::matmul(h, R::permute_dims(w));
            R::add(g, h)
        }
    }
}

fn main() {}
