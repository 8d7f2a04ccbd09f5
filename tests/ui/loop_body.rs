tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4>, w: R::Tensor<f32, 4>) -> R::Object {
            R::while_loop::<R::Tensor<f32, 4>>(step, (w,), (x,), trip_count = R::prim_value(3))
        }

        #[R::function]
        fn step(i: i64, w: R::Tensor<f32, 4>, x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            R::add(w, x)
        }
    }
}

fn main() {}
