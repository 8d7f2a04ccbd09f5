//@ rsqrt float 1
static inline @T@ tvm_rsqrt_@S@(@T@ x) { return 1 / tvm_sqrt_@S@(x); }

//@ exp10 float 1
static inline @T@ tvm_exp10_@S@(@T@ x) { return tvm_pow_@S@(10, x); }

//@ sigmoid float 1
static inline @T@ tvm_sigmoid_@S@(@T@ x) { return 1 / (1 + tvm_exp_@S@(-x)); }

//@ round float 1
/* Ties to even. */
static inline @T@ tvm_round_@S@(@T@ x) { return tvm_nearbyint_@S@(x); }

//@ ldexp float 2
@T@ ldexp@F@(@T@ x, int n);
static inline @T@ tvm_ldexp_@S@(@T@ x, @T@ n) { return ldexp@F@(x, tvm_cast_@S@_i32(n)); }

//@ isnan float 1 bool
static inline uint8_t tvm_isnan_@S@(@T@ x) { return x != x; }

//@ isinf float 1 bool
static inline uint8_t tvm_isinf_@S@(@T@ x) { return x == x && x - x != 0; }

//@ isfinite float 1 bool
static inline uint8_t tvm_isfinite_@S@(@T@ x) { return x - x == 0; }

//@ pow int 2
/* Wraps; a negative exponent gives 0, except for the bases 1 and -1; any base to the power 0 gives 1. */
static inline @T@ tvm_pow_@S@(@T@ x, @T@ n) {
    if (n < 0) return (@T@)(x == 1 ? 1 : x == -1 ? (n % 2 == 0 ? 1 : -1) : 0);
    return (@T@)tvm_pow_@US@((@U@)x, (@U@)n);
}

//@ pow uint 2
/* Wraps. */
static inline @T@ tvm_pow_@S@(@T@ x, @T@ n) {
    @T@ r = 1;
    for (; n != 0; n = (@T@)(n >> 1)) {
        if (n & 1) r = (@T@)(1u * r * x);
        x = (@T@)(1u * x * x);
    }
    return r;
}
