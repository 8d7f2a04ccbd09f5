tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 2, 4, 8>, y: R::Tensor<f32, 3, 8, 4>) -> R::Object {
            R::matmul(x, y)
        }
    }
}

fn main() {}
