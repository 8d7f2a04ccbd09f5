//@ select f32 0
static inline float tvm_select_f32(int32_t m, float a, float b) { return m ? a : b; }

//@ broadcast f32 0
static inline float tvm_broadcast_f32(float x) { return x; }

//@ tobits f32 0
static inline int32_t tvm_tobits_f32(float x) { return tvm_bits_f32_i32(x); }

//@ frombits f32 0
static inline float tvm_frombits_f32(int32_t x) { return tvm_bits_i32_f32(x); }

//@ tobits vf32 0
TVM_INLINE @M@ tvm_tobits_@S@(@T@ x) { return (@M@)x; }

//@ frombits vf32 0
TVM_INLINE @T@ tvm_frombits_@S@(@M@ x) { return (@T@)x; }

//@ exp anyf32 1
/* At most 2 ulp from e to the x. */
TVM_INLINE @T@ tvm_exp_@S@(@T@ x) {
    /* x = n ln 2 + r; adding 1.5 * 2^23 rounds to an integer. */
    const @T@ c = tvm_select_@S@((@M@)(x > 89.0f), tvm_broadcast_@S@(89.0f), tvm_select_@S@((@M@)(x < -104.0f), tvm_broadcast_@S@(-104.0f), x));
    const @T@ t = c * 1.44269504f + 12582912.0f;
    const @T@ nf = t - 12582912.0f;
    const @M@ n = tvm_tobits_@S@(t) - 0x4b400000;
    const @T@ r = (c - nf * 0.693359375f) + nf * 2.12194440e-4f;
    const @T@ p = ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) * r
                   + 1.6666665459e-1f) * r + 5.0000001201e-1f;
    const @T@ y = p * (r * r) + r + 1.0f;
    /* 2^n in two factors: n may lie outside of the exponents of normal numbers. */
    const @M@ half = n >> 1;
    return y * tvm_frombits_@S@((half + 127) << 23) * tvm_frombits_@S@((n - half + 127) << 23);
}

//@ log anyf32 1
/* At most 2 ulp from the natural logarithm. */
TVM_INLINE @T@ tvm_log_@S@(@T@ x) {
    const @M@ tiny = (@M@)(x < 1.17549435e-38f);
    const @T@ a = tvm_select_@S@(tiny, x * 8388608.0f, x);
    /* a = m 2^e, m between sqrt(1/2) and sqrt(2). */
    const @M@ bits = tvm_tobits_@S@(a) - 0x3f3504f3;
    const @M@ e = bits >> 23;
    const @T@ ef = tvm_select_@S@(tiny, @CVT:e@ - 23.0f, @CVT:e@);
    const @T@ m = tvm_frombits_@S@((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
    const @T@ z = m * m;
    @T@ p = (((((((7.0376836292e-2f * m - 1.1514610310e-1f) * m + 1.1676998740e-1f) * m - 1.2420140846e-1f) * m
                + 1.4249322787e-1f) * m - 1.6668057665e-1f) * m + 2.0000714765e-1f) * m - 2.4999993993e-1f) * m
            + 3.3333331174e-1f;
    p = p * m * z + ef * -2.12194440e-4f - 0.5f * z;
    const @T@ y = m + p + ef * 0.693359375f;
    const @T@ inf = tvm_broadcast_@S@(__builtin_inff());
    const @T@ special = tvm_select_@S@((@M@)(x == 0.0f), -inf, tvm_select_@S@((@M@)(x > 0.0f), x, tvm_broadcast_@S@(__builtin_nanf(""))));
    return tvm_select_@S@((@M@)(x > 0.0f) & (@M@)(x <= 3.40282347e+38f), y, special);
}

//@ sigmoid anyf32 1
/* At most 3 ulp from 1 / (1 + exp(-x)). */
TVM_INLINE @T@ tvm_sigmoid_@S@(@T@ x) {
    const @T@ e = tvm_exp_@S@(-tvm_abs_@S@(x));
    return tvm_select_@S@((@M@)(x < 0.0f), e, tvm_broadcast_@S@(1.0f)) / (1.0f + e);
}

//@ tanh anyf32 1
/* At most 3 ulp from the hyperbolic tangent. */
TVM_INLINE @T@ tvm_tanh_@S@(@T@ x) {
    const @T@ a = tvm_abs_@S@(x), z = x * x;
    const @T@ small = ((((-5.70498872745e-3f * z + 2.06390887954e-2f) * z - 5.37397155531e-2f) * z + 1.33314422036e-1f) * z
                       - 3.33332819422e-1f) * z * x + x;
    const @T@ large = 1.0f - 2.0f / (tvm_exp_@S@(a + a) + 1.0f);
    return tvm_select_@S@((@M@)(a < 0.625f), small, tvm_select_@S@((@M@)(x < 0.0f), -large, large));
}

//@ erf anyf32 1
/* At most 3 ulp from the error function. */
TVM_INLINE @T@ tvm_erf_@S@(@T@ x) {
    const @T@ a = tvm_abs_@S@(x), z = x * x;
    const @T@ small = ((((((7.853861353153693e-5f * z - 8.010193625184903e-4f) * z + 5.188327685732524e-3f) * z
                         - 2.685381193529856e-2f) * z + 1.128358514861418e-1f) * z - 3.761262582423300e-1f) * z
                       + 1.128379165726710e+0f) * x;
    const @T@ q = 1.0f / a, y = q * q;
    const @T@ p = (((((((2.326819970068386e-2f * y - 1.387039388740657e-1f) * y + 3.687424674597105e-1f) * y
                      - 5.824733027278666e-1f) * y + 6.210004621745983e-1f) * y - 4.944515323274145e-1f) * y
                    + 3.404879937665872e-1f) * y - 2.741127028184656e-1f) * y + 5.638259427386472e-1f;
    const @T@ far = ((((((-1.047766399936249e+1f * y + 1.297719955372516e+1f) * y - 7.495518717768503e+0f) * y
                       + 2.921019019210786e+0f) * y - 1.015265279202700e+0f) * y + 4.218463358204948e-1f) * y
                     - 2.820767439740514e-1f) * y + 5.641895067754075e-1f;
    const @T@ rest = tvm_exp_@S@(-z) * q * tvm_select_@S@((@M@)(a < 2.0f), p, far);
    const @T@ large = tvm_select_@S@((@M@)(a > 4.0f), tvm_broadcast_@S@(1.0f), 1.0f - rest);
    const @T@ outer = tvm_select_@S@((@M@)(x < 0.0f), -large, large);
    return tvm_select_@S@((@M@)(a < 1.0f), small, tvm_select_@S@((@M@)(x == x), outer, x));
}
