tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            for (i, j) in T::grid(16, 16) {
                T::block("scale", {
                    a[[i, j]] = a[[vi, vj]] * 2.0f32;
                });
            }
        }
    }
}

fn main() {}
