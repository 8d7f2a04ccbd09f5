//! A library with a model, version 1.
#![deny(warnings, missing_docs, unreachable_pub)]

tvm_macros::ir_module! {
    /// Multiplies.
    pub mod scale {
        /// 1 times a vector.
        #[R::function]
        pub fn main(x: R::Tensor<f32, N>) -> R::Tensor<f32, N> {
            x * R::constant(1.0, f32)
        }

        /// Constant shapes, and a weight.
        #[R::function]
        pub fn fixed(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            x + R::constant([1.0, 0.0, 0.0, 1.0], f32)
        }
    }
}
