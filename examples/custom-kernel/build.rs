//! Compiles the module of `src/main.rs`, and the C library that it calls.

fn main() {
    let build = tvm_build::Build::new().rust_source("src").c_source("blas/blas_like.c");
    // The header says what the library's functions take; where libclang is missing, its signature is given here.
    let build = if cfg!(feature = "bindgen") {
        build.c_header("blas/blas_like.h")
    } else {
        build.extern_fn(
            "fn blas_sgemv(order: c_uint, m: c_int, n: c_int, alpha: f32, a: *const f32, lda: c_int, x: *const f32, \
             y: *mut f32) -> c_int",
        )
    };
    build.compile();
}
