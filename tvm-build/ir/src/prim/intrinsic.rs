//! The intrinsic table: one row a function. Parser, printer, interpreter and back ends read it.

use super::PrimExpr;
use crate::dtype::DType;

/// How the type of a call follows from its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultType {
    /// The type of argument 0.
    First,
    /// The type of argument 1.
    Second,
    /// Bool, of the lanes of argument 0.
    Bool,
    /// `int32`, of the lanes of argument 0.
    Int32,
    /// No value.
    Void,
    /// Given by the caller (`reinterpret`), see [`PrimExpr::new`].
    Given,
}

/// A row of the table.
#[derive(Debug)]
pub struct IntrinsicDef {
    /// Name after `T.`.
    pub name: &'static str,
    /// Number of arguments.
    pub arity: u8,
    /// Type of the result.
    pub result: ResultType,
    /// What it computes.
    pub doc: &'static str,
}

macro_rules! intrinsics {
    ($($variant:ident $name:literal $arity:literal $result:ident $doc:literal;)*) => {
        /// A function of the intrinsic table.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Intrinsic { $( #[doc = $doc] $variant, )* }

        /// Every intrinsic, in declaration order.
        pub static INTRINSICS: &[(Intrinsic, IntrinsicDef)] = &[
            $( (Intrinsic::$variant, IntrinsicDef { name: $name, arity: $arity, result: ResultType::$result, doc: $doc }), )*
        ];

        impl Intrinsic {
            /// Its row.
            pub fn def(self) -> &'static IntrinsicDef {
                match self { $( Intrinsic::$variant => {
                    static DEF: IntrinsicDef = IntrinsicDef { name: $name, arity: $arity, result: ResultType::$result, doc: $doc };
                    &DEF
                } )* }
            }
        }
    };
}

intrinsics! {
    Abs "abs" 1 First "|x|; the least integer wraps";
    Acos "acos" 1 First "arc cosine";
    Acosh "acosh" 1 First "inverse hyperbolic cosine";
    Asin "asin" 1 First "arc sine";
    Asinh "asinh" 1 First "inverse hyperbolic sine";
    Atan "atan" 1 First "arc tangent";
    Atan2 "atan2" 2 First "angle of the point (y, x)";
    Atanh "atanh" 1 First "inverse hyperbolic tangent";
    BitNot "bitwise_not" 1 First "every bit flipped";
    Ceil "ceil" 1 First "least integer not below";
    Clz "clz" 1 Int32 "leading zero bits";
    Copysign "copysign" 2 First "magnitude of x, sign of y";
    Cos "cos" 1 First "cosine";
    Cosh "cosh" 1 First "hyperbolic cosine";
    Erf "erf" 1 First "error function";
    Exp "exp" 1 First "e to the x";
    Exp10 "exp10" 1 First "10 to the x";
    Exp2 "exp2" 1 First "2 to the x";
    Floor "floor" 1 First "greatest integer not above";
    Fma "fma" 3 First "x * y + z, rounded once";
    Fmod "fmod" 2 First "remainder with the dividend's sign";
    Hypot "hypot" 2 First "sqrt(x*x + y*y)";
    IfThenElse "if_then_else" 3 Second "the second or third argument; only the chosen one is evaluated";
    IsFinite "isfinite" 1 Bool "neither infinite nor NaN";
    IsInf "isinf" 1 Bool "infinite of either sign";
    IsNan "isnan" 1 Bool "not a number";
    Ldexp "ldexp" 2 First "x * 2^n";
    Likely "likely" 1 First "the argument; a hint that it is true";
    Log "log" 1 First "natural logarithm";
    Log10 "log10" 1 First "decimal logarithm";
    Log1p "log1p" 1 First "log(1 + x)";
    Log2 "log2" 1 First "binary logarithm";
    Nearbyint "nearbyint" 1 First "nearest integer, ties to even";
    Nextafter "nextafter" 2 First "next representable value toward y";
    Popcount "popcount" 1 First "one bits";
    Pow "pow" 2 First "x to the y";
    Reinterpret "reinterpret" 1 Given "the same bits as another type";
    Round "round" 1 First "nearest integer, ties to even as TVM's topi rounds";
    Rsqrt "rsqrt" 1 First "1 / sqrt(x)";
    Sigmoid "sigmoid" 1 First "1 / (1 + exp(-x))";
    Sin "sin" 1 First "sine";
    Sinh "sinh" 1 First "hyperbolic sine";
    Sqrt "sqrt" 1 First "square root";
    StorageSync "tvm_storage_sync" 1 Void "barrier of the scope named by the argument";
    Tan "tan" 1 First "tangent";
    Tanh "tanh" 1 First "hyperbolic tangent";
    Trunc "trunc" 1 First "integer part";
}

impl Intrinsic {
    /// The intrinsic of a name after `T.`.
    pub fn parse(name: &str) -> Option<Intrinsic> {
        INTRINSICS.iter().find(|(_, d)| d.name == name).map(|(i, _)| *i)
    }

    /// Name after `T.`.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// Type of a call with these arguments; `void` when the row leaves it to the caller.
    pub fn result_type(self, args: &[PrimExpr]) -> DType {
        let of = |i: usize| args.get(i).map_or(DType::VOID, PrimExpr::dtype);
        match self.def().result {
            ResultType::First => of(0),
            ResultType::Second => of(1),
            ResultType::Bool => DType::BOOL.with_lanes(of(0).lanes),
            ResultType::Int32 => DType::I32.with_lanes(of(0).lanes),
            ResultType::Void | ResultType::Given => DType::VOID,
        }
    }
}
