tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            for i in 0..4 {
                a[[i, 4 * i + 2..4 * i + 6]] = T::Broadcast(0.0f32, 4);
            }
        }
    }
}

fn main() {}
