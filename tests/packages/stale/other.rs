tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            x * x
        }
    }
}
