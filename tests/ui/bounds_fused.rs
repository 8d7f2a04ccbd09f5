tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(out: T::Buffer<f32, N, M>) {
            for f in 0..N * M {
                out[[T::floordiv(f, M), f % N]] = 0.0f32;
            }
        }
    }
}

fn main() {}
