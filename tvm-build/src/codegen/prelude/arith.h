
//@ div int 2
/* Rounds toward zero; the least value divided by -1 wraps, a zero divisor gives 0. */
static inline @T@ tvm_div_@S@(@T@ a, @T@ b) {
    if (b == 0) return 0;
    if (b == -1) return (@T@)(0u - (@U@)a);
    return (@T@)(a / b);
}

//@ mod int 2
/* The dividend's sign; a zero divisor gives 0. */
static inline @T@ tvm_mod_@S@(@T@ a, @T@ b) {
    if (b == 0 || b == -1) return 0;
    return (@T@)(a % b);
}

//@ floordiv int 2
/* Rounds toward negative infinity; the least value divided by -1 wraps, a zero divisor gives 0. */
static inline @T@ tvm_floordiv_@S@(@T@ a, @T@ b) {
    if (b == 0) return 0;
    if (b == -1) return (@T@)(0u - (@U@)a);
    return (@T@)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

//@ floormod int 2
/* The divisor's sign; a zero divisor gives 0. */
static inline @T@ tvm_floormod_@S@(@T@ a, @T@ b) {
    if (b == 0 || b == -1) return 0;
    return (@T@)(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));
}

//@ div uint 2
/* A zero divisor gives 0. */
static inline @T@ tvm_div_@S@(@T@ a, @T@ b) { return (@T@)(b == 0 ? 0 : a / b); }

//@ mod uint 2
/* A zero divisor gives 0. */
static inline @T@ tvm_mod_@S@(@T@ a, @T@ b) { return (@T@)(b == 0 ? 0 : a % b); }

//@ floordiv uint 2
/* A zero divisor gives 0. */
static inline @T@ tvm_floordiv_@S@(@T@ a, @T@ b) { return (@T@)(b == 0 ? 0 : a / b); }

//@ floormod uint 2
/* A zero divisor gives 0. */
static inline @T@ tvm_floormod_@S@(@T@ a, @T@ b) { return (@T@)(b == 0 ? 0 : a % b); }

//@ min int 2
static inline @T@ tvm_min_@S@(@T@ a, @T@ b) { return a < b ? a : b; }

//@ max int 2
static inline @T@ tvm_max_@S@(@T@ a, @T@ b) { return a > b ? a : b; }

//@ min uint 2
static inline @T@ tvm_min_@S@(@T@ a, @T@ b) { return a < b ? a : b; }

//@ max uint 2
static inline @T@ tvm_max_@S@(@T@ a, @T@ b) { return a > b ? a : b; }

//@ abs int 1
/* The least value wraps. */
static inline @T@ tvm_abs_@S@(@T@ x) { return (@T@)(x < 0 ? 0u - (@U@)x : (@U@)x); }

//@ abs uint 1
static inline @T@ tvm_abs_@S@(@T@ x) { return x; }

//@ clz uint 1 i32
/* Leading zero bits; all of them for 0. */
static inline int32_t tvm_clz_@S@(@T@ x) {
    int32_t n = 0;
    for (int32_t step = @BITS@ / 2; step > 0; step /= 2) {
        if ((x >> (@BITS@ - step)) == 0) {
            n += step;
            x = (@T@)(x << step);
        }
    }
    return n + (x == 0);
}

//@ clz int 1 i32
static inline int32_t tvm_clz_@S@(@T@ x) { return tvm_clz_@US@((@U@)x); }

//@ popcount uint 1
/* One bits. */
static inline @T@ tvm_popcount_@S@(@T@ x) {
    @T@ n = 0;
    for (; x != 0; x = (@T@)(x & (x - 1))) ++n;
    return n;
}

//@ popcount int 1
static inline @T@ tvm_popcount_@S@(@T@ x) { return (@T@)tvm_popcount_@US@((@U@)x); }

//@ add float 2
static inline @T@ tvm_add_@S@(@T@ a, @T@ b) { return a + b; }

//@ sub float 2
static inline @T@ tvm_sub_@S@(@T@ a, @T@ b) { return a - b; }

//@ mul float 2
static inline @T@ tvm_mul_@S@(@T@ a, @T@ b) { return a * b; }

//@ div float 2
static inline @T@ tvm_div_@S@(@T@ a, @T@ b) { return a / b; }

//@ mod float 2
@T@ fmod@F@(@T@ x, @T@ y);
static inline @T@ tvm_mod_@S@(@T@ a, @T@ b) { return fmod@F@(a, b); }

//@ floordiv float 2
@T@ floor@F@(@T@ x);
static inline @T@ tvm_floordiv_@S@(@T@ a, @T@ b) { return floor@F@(a / b); }

//@ floormod float 2
/* The divisor's sign. */
@T@ fmod@F@(@T@ x, @T@ y);
static inline @T@ tvm_floormod_@S@(@T@ a, @T@ b) {
    const @T@ r = fmod@F@(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

//@ min float 2
/* A NaN operand gives NaN. */
static inline @T@ tvm_min_@S@(@T@ a, @T@ b) { return a < b || a != a ? a : b; }

//@ max float 2
/* A NaN operand gives NaN. */
static inline @T@ tvm_max_@S@(@T@ a, @T@ b) { return a > b || a != a ? a : b; }

//@ abs float 1
static inline @T@ tvm_abs_@S@(@T@ x) { return tvm_bits_@US@_@S@(tvm_bits_@S@_@US@(x) & (@U@)(((@U@)1 << (@BITS@ - 1)) - 1)); }

//@ minc float 0
/* b is not NaN; a NaN in a stays. */
static inline @T@ tvm_minc_@S@(@T@ a, @T@ b) { return b < a ? b : a; }

//@ maxc float 0
/* b is not NaN; a NaN in a stays. */
static inline @T@ tvm_maxc_@S@(@T@ a, @T@ b) { return b > a ? b : a; }
