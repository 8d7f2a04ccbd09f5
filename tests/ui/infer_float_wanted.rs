tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(i: R::Tensor<i32, N>) -> R::Object {
            R::exp(i)
        }
    }
}

fn main() {}
