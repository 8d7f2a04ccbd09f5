//! A library with a model, version 2.
#![deny(warnings, missing_docs, unreachable_pub)]

tvm_macros::ir_module! {
    /// Multiplies.
    pub mod scale {
        /// 2 times a vector.
        #[R::function]
        pub fn main(x: R::Tensor<f32, N>) -> R::Tensor<f32, N> {
            x * R::constant(2.0, f32)
        }

        /// Constant shapes, and a weight.
        #[R::function]
        pub fn fixed(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            x + R::constant([2.0, 0.0, 0.0, 2.0], f32)
        }
    }
}
