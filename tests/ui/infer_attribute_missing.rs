tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(i: R::Tensor<i64, N>) -> R::Object {
            R::one_hot(i, R::prim_value(1.0f32), R::prim_value(0.0f32))
        }
    }
}

fn main() {}
