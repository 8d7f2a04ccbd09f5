//@ cast_f16_f32
static inline float tvm_cast_f16_f32(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, mag = h & 0x7fffu;
    if (mag >= 0x7c00u) return tvm_bits_u32_f32(sign | 0x7f800000u | (mag & 0x3ffu) << 13);
    if (mag >= 0x0400u) return tvm_bits_u32_f32(sign | ((mag << 13) + 0x38000000u));
    return tvm_bits_u32_f32(sign | tvm_bits_f32_u32((float)mag * 0x1p-24f));
}

//@ cast_f32_f16
/* Rounds to nearest, ties to even. */
static inline uint16_t tvm_cast_f32_f16(float x) {
    const uint32_t bits = tvm_bits_f32_u32(x), sign = bits >> 16 & 0x8000u, mag = bits & 0x7fffffffu;
    if (mag > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (mag >> 13 & 0x3ffu));
    if (mag >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    if (mag >= 0x38800000u) return (uint16_t)(sign | (mag - 0x38000000u + 0xfffu + (mag >> 13 & 1u)) >> 13);
    /* Subnormal: adding 0.5 rounds at bit 24 below the binary point. */
    return (uint16_t)(sign | (tvm_bits_f32_u32(tvm_bits_u32_f32(mag) + 0.5f) - 0x3f000000u));
}

//@ cast_bf16_f32
static inline float tvm_cast_bf16_f32(uint16_t h) { return tvm_bits_u32_f32((uint32_t)h << 16); }

//@ cast_f32_bf16
/* Rounds to nearest, ties to even. */
static inline uint16_t tvm_cast_f32_bf16(float x) {
    const uint32_t bits = tvm_bits_f32_u32(x);
    if (x != x) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

//@ odd_f64_f32
/* Rounds to odd, so that rounding once more to a narrower type is as rounding once. */
static inline float tvm_odd_f64_f32(double x) {
    const float y = (float)x;
    const uint32_t bits = tvm_bits_f32_u32(y);
    const double back = (double)y;
    if (!(back < x || back > x) || (bits & 1u)) return y;
    if (back - back != 0) return tvm_bits_u32_f32(bits - 1u);
    return tvm_bits_u32_f32((back < 0 ? back < x : back > x) ? bits - 1u : bits + 1u);
}

//@ narrow_decode
/* A float of 8 bits with `man` mantissa bits: its value. Special values are the caller's. */
static inline float tvm_narrow_decode(uint32_t mag, int man, int bias) {
    const uint32_t exponent = mag >> man, mantissa = mag & ((1u << man) - 1u);
    const uint32_t significand = exponent ? mantissa | 1u << man : mantissa;
    const int scale = (exponent ? (int)exponent : 1) - bias - man;
    return (float)significand * tvm_bits_u32_f32((uint32_t)(scale + 127) << 23);
}

//@ narrow_encode
/* Magnitude of a finite float in a format of `man` mantissa bits, rounded to nearest, ties to even; the exponent may overflow. */
static inline uint32_t tvm_narrow_encode(uint32_t mag, int man, int bias) {
    const int shift = 23 - man;
    const int exponent = (int)(mag >> 23) - 127 + bias;
    if (exponent >= 1) {
        const uint32_t m = ((uint32_t)exponent << 23) | (mag & 0x7fffffu);
        return (m + (1u << (shift - 1)) - 1u + (m >> shift & 1u)) >> shift;
    }
    const int extra = shift + 1 - exponent;
    if (extra > 25) return 0;
    const uint32_t m = (mag & 0x7fffffu) | 0x800000u;
    return (m + (1u << (extra - 1)) - 1u + (m >> extra & 1u)) >> extra;
}

//@ cast_f8e4m3fn_f32
static inline float tvm_cast_f8e4m3fn_f32(uint8_t h) {
    const uint32_t mag = h & 0x7fu;
    if (mag == 0x7fu) return tvm_bits_u32_f32((uint32_t)(h & 0x80u) << 24 | 0x7fc00000u);
    return tvm_bits_u32_f32((uint32_t)(h & 0x80u) << 24 | tvm_bits_f32_u32(tvm_narrow_decode(mag, 3, 7)));
}

//@ cast_f32_f8e4m3fn
/* Rounds to nearest, ties to even; what is too great gives the greatest number. */
static inline uint8_t tvm_cast_f32_f8e4m3fn(float x) {
    const uint32_t bits = tvm_bits_f32_u32(x), sign = bits >> 24 & 0x80u, mag = bits & 0x7fffffffu;
    if (mag > 0x7f800000u) return (uint8_t)(sign | 0x7fu);
    if (mag == 0x7f800000u) return (uint8_t)(sign | 0x7eu);
    const uint32_t r = tvm_narrow_encode(mag, 3, 7);
    return (uint8_t)(sign | (r > 0x7eu ? 0x7eu : r));
}

//@ cast_f8e4m3fnuz_f32
static inline float tvm_cast_f8e4m3fnuz_f32(uint8_t h) {
    if (h == 0x80u) return tvm_bits_u32_f32(0x7fc00000u);
    return tvm_bits_u32_f32((uint32_t)(h & 0x80u) << 24 | tvm_bits_f32_u32(tvm_narrow_decode(h & 0x7fu, 3, 8)));
}

//@ cast_f32_f8e4m3fnuz
/* Rounds to nearest, ties to even; what is too great gives the greatest number. There is no negative zero. */
static inline uint8_t tvm_cast_f32_f8e4m3fnuz(float x) {
    const uint32_t bits = tvm_bits_f32_u32(x), sign = bits >> 24 & 0x80u, mag = bits & 0x7fffffffu;
    if (mag > 0x7f800000u) return 0x80u;
    if (mag == 0x7f800000u) return (uint8_t)(sign | 0x7fu);
    const uint32_t r = tvm_narrow_encode(mag, 3, 8);
    return (uint8_t)(r > 0x7fu ? sign | 0x7fu : r == 0 ? 0 : sign | r);
}

//@ cast_f8e5m2_f32
static inline float tvm_cast_f8e5m2_f32(uint8_t h) { return tvm_cast_f16_f32((uint16_t)((uint32_t)h << 8)); }

//@ cast_f32_f8e5m2
/* Rounds to nearest, ties to even; what is too great gives the greatest number. */
static inline uint8_t tvm_cast_f32_f8e5m2(float x) {
    const uint32_t bits = tvm_bits_f32_u32(x), sign = bits >> 24 & 0x80u, mag = bits & 0x7fffffffu;
    if (mag > 0x7f800000u) return (uint8_t)(sign | 0x7eu);
    if (mag == 0x7f800000u) return (uint8_t)(sign | 0x7bu);
    const uint32_t r = tvm_narrow_encode(mag, 2, 15);
    return (uint8_t)(sign | (r > 0x7bu ? 0x7bu : r));
}

//@ cast_f8e5m2fnuz_f32
static inline float tvm_cast_f8e5m2fnuz_f32(uint8_t h) {
    if (h == 0x80u) return tvm_bits_u32_f32(0x7fc00000u);
    return tvm_bits_u32_f32((uint32_t)(h & 0x80u) << 24 | tvm_bits_f32_u32(tvm_narrow_decode(h & 0x7fu, 2, 16)));
}

//@ cast_f32_f8e5m2fnuz
/* Rounds to nearest, ties to even; what is too great gives the greatest number. There is no negative zero. */
static inline uint8_t tvm_cast_f32_f8e5m2fnuz(float x) {
    const uint32_t bits = tvm_bits_f32_u32(x), sign = bits >> 24 & 0x80u, mag = bits & 0x7fffffffu;
    if (mag > 0x7f800000u) return 0x80u;
    if (mag == 0x7f800000u) return (uint8_t)(sign | 0x7fu);
    const uint32_t r = tvm_narrow_encode(mag, 2, 16);
    return (uint8_t)(r > 0x7fu ? sign | 0x7fu : r == 0 ? 0 : sign | r);
}

//@ cast_f8e8m0fnu_f32
static inline float tvm_cast_f8e8m0fnu_f32(uint8_t h) {
    return tvm_bits_u32_f32(h == 0xffu ? 0x7fc00000u : h == 0 ? 0x00400000u : (uint32_t)h << 23);
}

//@ cast_f32_f8e8m0fnu
/* To the nearest power of two, ties up; NaN, infinity and negative numbers give NaN. */
static inline uint8_t tvm_cast_f32_f8e8m0fnu(float x) {
    const uint32_t mag = tvm_bits_f32_u32(x) & 0x7fffffffu;
    if (x != x || x < 0 || mag == 0x7f800000u) return 0xffu;
    if (mag < 0x00600000u) return 0;
    const uint32_t r = (mag + 0x00400000u) >> 23;
    return (uint8_t)(r > 0xfeu ? 0xfeu : r);
}
