tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        #[R::func_atr(num_input = 1)]
        pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            x
        }
    }
}

fn main() {}
