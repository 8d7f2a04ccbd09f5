tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, { 2 * N }>) -> R::Object {
            R::nn::relu(x)
        }
    }
}

fn main() {}
