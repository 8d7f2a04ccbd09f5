//! Types under 8 bits as the bytes that hold them: the first element in the lowest bits, as ONNX packs them.

macro_rules! packed {
    ($($(#[doc = $doc:literal])* $name:ident [$value:ident; $len:literal] $decode:ident $encode:ident;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            /// Elements that a value holds.
            pub const LEN: usize = $len;

            /// A value of these elements.
            pub fn new(elements: [$value; $len]) -> Self {
                let bits = elements.iter().rev().fold(0u8, |byte, &e| byte << (8 / $len) | $encode(e));
                $name(bits)
            }

            /// The elements.
            pub fn to_array(self) -> [$value; $len] {
                core::array::from_fn(|i| $decode(self.0 >> (i * (8 / $len)) & (0xff >> (8 - 8 / $len))))
            }

            /// The values that hold these elements; the rest of the last one is zero.
            pub fn pack(elements: &[$value]) -> impl Iterator<Item = Self> + '_ {
                elements.chunks($len).map(|chunk| {
                    let zero = $decode(0);
                    Self::new(core::array::from_fn(|i| chunk.get(i).copied().unwrap_or(zero)))
                })
            }

            /// The elements in these values; of a tensor whose last byte is not full, `take` as many as it has.
            pub fn unpack(packed: &[Self]) -> impl Iterator<Item = $value> + '_ {
                packed.iter().flat_map(|p| p.to_array())
            }
        }
    )* };
}

packed! {
    /// Two `int4`, -8 to 7. Of other numbers the low bits count.
    I4x2 [i8; 2] int4 low4;
    /// Two `uint4`, 0 to 15. Of other numbers the low bits count.
    U4x2 [u8; 2] same low4u;
    /// Four `int2`, -2 to 1. Of other numbers the low bits count.
    I2x4 [i8; 4] int2 low2;
    /// Four `uint2`, 0 to 3. Of other numbers the low bits count.
    U2x4 [u8; 4] same low2u;
    /// Two `float4_e2m1fn`: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. Other numbers are rounded to nearest, ties
    /// to even, what is too great to ±6, NaN to -0.
    F4E2M1x2 [f32; 2] decode_e2m1 encode_e2m1;
}

fn int4(bits: u8) -> i8 {
    ((bits << 4) as i8) >> 4
}

fn int2(bits: u8) -> i8 {
    ((bits << 6) as i8) >> 6
}

fn same(bits: u8) -> u8 {
    bits
}

fn low4(v: i8) -> u8 {
    v as u8 & 15
}

fn low4u(v: u8) -> u8 {
    v & 15
}

fn low2(v: i8) -> u8 {
    v as u8 & 3
}

fn low2u(v: u8) -> u8 {
    v & 3
}

/// The magnitudes, by their bits.
const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

fn decode_e2m1(bits: u8) -> f32 {
    let magnitude = E2M1.get(usize::from(bits & 7)).copied().unwrap_or(0.0);
    if bits & 8 != 0 { -magnitude } else { magnitude }
}

fn encode_e2m1(v: f32) -> u8 {
    if v.is_nan() {
        return 8;
    }
    let sign = if v.is_sign_negative() { 8 } else { 0 };
    let magnitude = f32::from_bits(v.to_bits() & 0x7fff_ffff);
    // Half-way points; from one before an even number on, that number is taken.
    let points = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0].iter().enumerate();
    let passed = points.filter(|&(i, at)| if i % 2 == 0 { magnitude > *at } else { magnitude >= *at });
    sign | passed.count() as u8
}
