tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            for (i, k) in T::grid(16, 16) {
                T::block("sum", {
                    let (vi, vk) = T::axis::remap("SR", [i, k]);
                    T::init({
                        b[vi] = vk;
                    });
                    b[vi] = b[vi] + 1;
                });
            }
        }
    }
}

fn main() {}
