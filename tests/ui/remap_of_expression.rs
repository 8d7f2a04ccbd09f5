tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            for i in 0..8 {
                T::block("b", {
                    let v = T::axis::remap("S", [i * 2]);
                    b[v] = 1;
                });
            }
        }
    }
}

fn main() {}
