tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4, 10>, i: R::Tensor<i64, 5, 3>) -> R::Object {
            R::gather_nd(x, i)
        }
    }
}

fn main() {}
