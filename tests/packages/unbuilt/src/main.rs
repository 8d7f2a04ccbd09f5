//! A package without a build script, as an editor sees one before the build script ran.
#![deny(warnings)]

tvm_macros::ir_module! {
    pub mod model {
        /// Rows in, rows out.
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 4>, k: i64) -> (R::Tensor<f32, N, 4>, R::Tensor<bool, 2>) {
            (x + x, R::constant([true, false], bool))
        }

        /// Constant shapes.
        #[R::function]
        pub fn fixed(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            x + x
        }
    }
}

fn main() -> Result<(), tvm_runtime::Error> {
    let _ = model::Module::with_arena(&mut tvm_runtime::Arena::<64>::new()).state();
    let mut module = model::Module::default();
    let (rows, flags): (Vec<f32>, Vec<bool>) = module.main(&[1.0; 8], 3, 2)?;
    let mut out = [0.0; 8];
    module.main_into(&[1.0; 8], 3, 2, &mut out, &mut [false; 2])?;
    let doubled: [f32; 4] = module.fixed(&[1.0; 4]);
    println!("{rows:?} {flags:?} {doubled:?} {} {}", model::TVMSCRIPT, model::Module::main_arena_bytes(2));
    Ok(())
}
