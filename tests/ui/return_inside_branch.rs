tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N>, c: R::Tensor<bool, ()>) -> R::Object {
            let y = if c { return x; } else { x };
            y
        }
    }
}

fn main() {}
