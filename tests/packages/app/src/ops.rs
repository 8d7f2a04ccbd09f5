//! What the module `top` calls.

/// Twice as much; a status of 1 where there is nothing to do.
#[unsafe(no_mangle)]
unsafe extern "C" fn app_double(x: *const f32, rows: i32, columns: usize, y: *mut f32) -> core::ffi::c_int {
    for i in 0..rows as usize * columns {
        // SAFETY: the call gives as many elements as it names.
        unsafe { *y.add(i) = 2.0 * *x.add(i) };
    }
    i32::from(rows == 0)
}

#[unsafe(export_name = "app_order")]
extern "C" fn order(large: &mut [f32; 4], a: &[f32; 4], b: &[f32; 4], largest_first: bool, small: &mut [f32; 4]) {
    assert!(largest_first);
    for i in 0..4 {
        (large[i], small[i]) = (a[i].max(b[i]), a[i].min(b[i]));
    }
}
