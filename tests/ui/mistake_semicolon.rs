tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>) -> R::Tensor<f32, N, 784> {
            let h = R::nn::relu(x);
            R::add(h, x);
        }
    }
}

fn main() {}
