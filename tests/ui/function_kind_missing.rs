tvm_macros::ir_module! {
    pub mod model {
        pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            x
        }
    }
}

fn main() {}
