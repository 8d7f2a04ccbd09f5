tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, c: R::Tensor<bool, ()>) -> R::Object {
            R::dataflow({
                let y = if c { x } else { x };
                R::output(y);
            });
            y
        }
    }
}

fn main() {}
