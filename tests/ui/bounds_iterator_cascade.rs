tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            for (i, j) in T::grid(5, 4) {
                T::block("tile", {
                    let v = T::axis::spatial(16, i * 4 + j);
                    b[v] = b[v] + 1;
                });
            }
        }
    }
}

fn main() {}
