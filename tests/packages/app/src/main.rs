//! Modules at the top of a file, in a module, in other files, under conditions, in libraries of two versions; functions
//! of this program in them.
#![deny(warnings)]

mod nested;
mod ops;

use tvm_macros::ir_module;

ir_module! {
    /// Calls functions of `ops.rs`.
    pub mod top {
        /// `2 x + 1`, by rows.
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 4>) -> R::Tensor<f32, N, 4> {
            let doubled = R::call_dps_packed::<R::Tensor<f32, N, 4>>("app_double", (x, R::shape([N, 4])));
            R::add(doubled, R::constant(1.0, f32))
        }

        /// The larger and the smaller of each pair.
        #[R::function]
        pub fn order(a: R::Tensor<f32, 4>, b: R::Tensor<f32, 4>) -> (R::Tensor<f32, 4>, R::Tensor<f32, 4>) {
            let pair = R::call_dps_packed::<R::Tensor<f32, 4>, R::Tensor<f32, 4>>("app_order", ((a, b), true));
            pair
        }
    }
}

mod inline {
    pub(crate) mod inner {
        tvm_macros::ir_module! {
            pub(crate) mod inside {
                #[R::function]
                pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
                    R::negative(x)
                }
            }
        }
    }
}

#[cfg(feature = "extra")]
ir_module! {
    pub mod choice {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            x * R::constant(3.0, f32)
        }
    }
}

#[cfg(not(feature = "extra"))]
ir_module! {
    pub mod choice {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            x * R::constant(2.0, f32)
        }
    }
}

fn main() -> Result<(), tvm_runtime::Error> {
    let x = [1.0, -2.0, 3.0, 4.0];
    assert_eq!(top::Module::new().main(&x, 1)?, [3.0, -3.0, 7.0, 9.0]);
    let ordered = top::Module::new().order(&x, &[0.0; 4])?;
    assert_eq!(ordered, ([1.0, 0.0, 3.0, 4.0], [0.0, -2.0, 0.0, 0.0]));
    assert_eq!(inline::inner::inside::Module::new().main(&x), [-1.0, 2.0, -3.0, -4.0]);
    assert_eq!(nested::deep::far::Module::new().main(&x), [1.0, 4.0, 9.0, 16.0]);
    let factor = if cfg!(feature = "extra") { 3.0 } else { 2.0 };
    assert_eq!(choice::Module::new().main(&x), x.map(|v| v * factor));
    assert_eq!(ops_1::scale::Module::new().main(&x, 4)?, x);
    assert_eq!(ops_2::scale::Module::new().main(&x, 4)?, x.map(|v| 2.0 * v));
    assert_eq!(ops_1::scale::Module::new().fixed(&[0.0; 4]), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(ops_2::scale::Module::new().fixed(&[0.0; 4]), [2.0, 0.0, 0.0, 2.0]);
    // A function of the program that gives another status than 0 fails the call.
    let failed = top::Module::new().main(&[], 0);
    assert!(matches!(failed, Err(tvm_runtime::Error::Extern { name: "app_double", .. })), "{failed:?}");
    println!("all as expected, factor {factor}");
    Ok(())
}
