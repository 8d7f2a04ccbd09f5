tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            for k in 0..16 {
                T::block("sum", {
                    let vk = T::axis::reduce(16, k);
                    T::init({
                        b[0] = 0;
                    });
                    T::init({
                        b[0] = 0;
                    });
                    b[0] = b[0] + vk;
                });
            }
        }
    }
}

fn main() {}
