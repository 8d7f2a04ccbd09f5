tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            for i in 0..16 {
                T::block("b", {
                    let v = T::axis::spatial(16, i);
                    T::reads();
                    T::writes(b[v]);
                    b[v] = a[[v, 1]] as i32;
                });
            }
        }
    }
}

fn main() {}
