tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, N>, out: T::Buffer<f32, N>) {
            for (i, j) in T::grid(T::floordiv(N + 7, 8), 8) {
                T::block("tile", {
                    let v = T::axis::spatial(N, i * 8 + j);
                    out[v] = a[v] * 2.0f32;
                });
            }
        }
    }
}

fn main() {}
