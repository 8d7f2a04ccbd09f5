//@ select vector 0
/* Lanes of a where the mask is all ones, of b where it is zero. */
TVM_INLINE @T@ tvm_select_@S@(@M@ m, @T@ a, @T@ b) { return (@T@)((m & (@M@)a) | (~m & (@M@)b)); }

//@ min vfloat 2
/* A NaN operand gives NaN. */
TVM_INLINE @T@ tvm_min_@S@(@T@ a, @T@ b) { return tvm_select_@S@((@M@)(a < b) | (@M@)(a != a), a, b); }

//@ max vfloat 2
/* A NaN operand gives NaN. */
TVM_INLINE @T@ tvm_max_@S@(@T@ a, @T@ b) { return tvm_select_@S@((@M@)(a > b) | (@M@)(a != a), a, b); }

//@ minc vfloat 0
/* b is not NaN; a NaN in a stays. */
TVM_INLINE @T@ tvm_minc_@S@(@T@ a, @T@ b) { return tvm_select_@S@((@M@)(b < a), b, a); }

//@ maxc vfloat 0
/* b is not NaN; a NaN in a stays. */
TVM_INLINE @T@ tvm_maxc_@S@(@T@ a, @T@ b) { return tvm_select_@S@((@M@)(b > a), b, a); }

//@ min vint 2
TVM_INLINE @T@ tvm_min_@S@(@T@ a, @T@ b) { return tvm_select_@S@((@M@)(a < b), a, b); }

//@ max vint 2
TVM_INLINE @T@ tvm_max_@S@(@T@ a, @T@ b) { return tvm_select_@S@((@M@)(a > b), a, b); }

//@ min vuint 2
TVM_INLINE @T@ tvm_min_@S@(@T@ a, @T@ b) { return tvm_select_@S@((@M@)(a < b), a, b); }

//@ max vuint 2
TVM_INLINE @T@ tvm_max_@S@(@T@ a, @T@ b) { return tvm_select_@S@((@M@)(a > b), a, b); }


//@ broadcast vector 0
TVM_INLINE @T@ tvm_broadcast_@S@(@ET@ x) {
    return (@T@){@LANES:x@};
}

//@ ramp vector 0
/* base, base + stride, base + 2 * stride, ... wrapping */
TVM_INLINE @T@ tvm_ramp_@S@(@ET@ base, @ET@ stride) {
    return (@T@)(tvm_broadcast_@US@((@EU@)base) + tvm_broadcast_@US@((@EU@)stride) * (@U@){@LANES:i@});
}

//@ abs vfloat 1
TVM_INLINE @T@ tvm_abs_@S@(@T@ x) {
    return (@T@)((@U@)x & tvm_broadcast_@US@((@EU@)~((@EU@)1 << (@BITS@ - 1))));
}
