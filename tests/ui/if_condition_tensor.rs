tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, c: R::Tensor<bool, N>) -> R::Object {
            let y = if c { x } else { x };
            y
        }
    }
}

fn main() {}
