//! Strings. A tensor of strings holds numbers of texts that the state keeps, each text once: equal strings have equal
//! numbers, so that kernels move and compare them as any other element. They lie on the heap (feature `alloc`).

#[cfg(feature = "alloc")]
use crate::builtin::{arg, name};
use crate::bytecode::Operand;
#[cfg(feature = "alloc")]
use crate::dtype::DType;
use crate::error::Error;
#[cfg(feature = "alloc")]
use crate::number::{self, Float};
#[cfg(feature = "alloc")]
use crate::tensor::TensorRef;
use crate::tensor::Value;
use crate::vm::{Fail, Frame};
#[cfg(feature = "alloc")]
use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};
#[cfg(feature = "alloc")]
use core::fmt::Write as _;

/// A string of a module's state: an element of tensors of strings. [`crate::State::text`] gives its characters,
/// [`crate::State::intern`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Text(pub(crate) u64);

impl Text {
    /// The string without characters.
    pub const EMPTY: Self = Text(0);
}

/// The strings of a state.
#[derive(Default)]
pub(crate) struct Texts {
    /// By number, from 1.
    #[cfg(feature = "alloc")]
    all: Vec<Box<str>>,
    #[cfg(feature = "alloc")]
    numbers: BTreeMap<Box<str>, u64>,
}

#[cfg(feature = "alloc")]
impl Texts {
    pub(crate) fn get(&self, text: Text) -> Option<&str> {
        match usize::try_from(text.0).ok()?.checked_sub(1) {
            None => Some(""),
            Some(at) => self.all.get(at).map(|s| &**s),
        }
    }

    pub(crate) fn intern(&mut self, s: &str) -> Text {
        if s.is_empty() {
            return Text::EMPTY;
        }
        if let Some(number) = self.numbers.get(s) {
            return Text(*number);
        }
        self.all.push(s.into());
        let number = self.all.len() as u64;
        self.numbers.insert(s.into(), number);
        Text(number)
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.numbers.clear();
    }
}

macro_rules! builtins {
    ($($name:ident)*) => { $(
        pub(crate) fn $name(f: &mut Frame<'_>, a: &[Operand]) -> Result<Value, Fail> {
            #[cfg(feature = "alloc")]
            return f.$name(a).map(|()| Value::None);
            #[cfg(not(feature = "alloc"))]
            {
                let _ = a;
                Err(f.fail(Error::Text { message: "strings need a heap: enable the feature `alloc` of tvm-runtime" }))
            }
        }
    )* };
}

builtins! { text_constant text_concat text_normalize text_keep_count text_keep text_split_count text_split text_match
text_format text_parse }

#[cfg(feature = "alloc")]
impl Frame<'_> {
    fn no_text(&self) -> Fail {
        self.fail(Error::Text { message: "a tensor holds strings that are not of this state" })
    }

    /// An element of a tensor of strings.
    fn text(&self, t: TensorRef, i: usize) -> Result<&str, Fail> {
        if t.dtype != DType::TEXT || i >= self.elements(t.shape)? {
            return Err(self.malformed("an operand must be a tensor of strings"));
        }
        // SAFETY: in bounds, of this type, alive and initialised as the program says.
        let text = unsafe { t.data.cast::<Text>().add(i).read_unaligned() };
        self.texts.get(text).ok_or_else(|| self.no_text())
    }

    fn owned(&self, t: TensorRef) -> Result<Vec<String>, Fail> {
        (0..self.elements(t.shape)?).map(|i| self.text(t, i).map(String::from)).collect()
    }

    /// Writes an element of a tensor of this dtype.
    fn put<T: crate::Element>(&mut self, t: TensorRef, i: usize, value: T) -> Result<(), Fail> {
        if t.dtype != T::DTYPE || i >= self.elements(t.shape)? {
            return Err(self.malformed("a result has another dtype or size than its tensor"));
        }
        // SAFETY: in bounds and of this type, in memory that the program writes.
        unsafe { t.data.cast::<T>().add(i).write_unaligned(value) };
        Ok(())
    }

    fn put_text(&mut self, t: TensorRef, i: usize, s: &str) -> Result<(), Fail> {
        let text = self.texts.intern(s);
        self.put(t, i, text)
    }

    /// `(bytes, ends, out)`: the strings that end at these bytes.
    fn text_constant(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let (bytes, ends, out) = (self.tensor(arg(a, 0))?, self.tensor(arg(a, 1))?, self.tensor(arg(a, 2))?);
        if bytes.dtype != DType::U8 {
            return Err(self.malformed("the bytes of strings must be uint8"));
        }
        let count = self.elements(bytes.shape)?;
        // SAFETY: the tensor holds as many bytes, alive and not written during this call.
        let all = unsafe { core::slice::from_raw_parts(bytes.data.cast_const(), count) };
        let mut start = 0;
        for i in 0..self.elements(ends.shape)? {
            let end = match self.element(ends, i)? {
                Value::Int(end) => usize::try_from(end).unwrap_or(usize::MAX),
                _ => return Err(self.malformed("the ends of strings must be integers")),
            };
            let s = all.get(start..end).and_then(|s| core::str::from_utf8(s).ok());
            let s = s.ok_or_else(|| self.malformed("the bytes of a string are not UTF-8"))?;
            self.put_text(out, i, s)?;
            start = end;
        }
        Ok(())
    }

    /// `(a, b, out)`, of one shape.
    fn text_concat(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let (x, y, out) = (self.tensor(arg(a, 0))?, self.tensor(arg(a, 1))?, self.tensor(arg(a, 2))?);
        for i in 0..self.elements(out.shape)? {
            let mut s = String::from(self.text(x, i)?);
            s.push_str(self.text(y, i)?);
            self.put_text(out, i, &s)?;
        }
        Ok(())
    }

    /// `(x, case, out)`: 1 lower case, 2 upper case, else as they are.
    fn text_normalize(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let (x, case, out) = (self.tensor(arg(a, 0))?, self.int(arg(a, 1))?, self.tensor(arg(a, 2))?);
        for i in 0..self.elements(out.shape)? {
            let s = cased(self.text(x, i)?, case);
            self.put_text(out, i, &s)?;
        }
        Ok(())
    }

    /// The strings of `x` that are none of `stop`; with `fold` case does not matter.
    fn kept(&self, a: &[Operand]) -> Result<Vec<String>, Fail> {
        let (x, stop, fold) = (self.tensor(arg(a, 0))?, self.tensor(arg(a, 1))?, self.int(arg(a, 2))?);
        let stop: Vec<String> = self.owned(stop)?.iter().map(|s| cased(s, fold)).collect();
        Ok(self.owned(x)?.into_iter().filter(|s| !stop.contains(&cased(s, fold))).collect())
    }

    /// `(x, stop, fold, out)`: how many are kept, at least 1.
    fn text_keep_count(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let (count, out) = (self.kept(a)?.len().max(1), self.tensor(arg(a, 3))?);
        self.put(out, 0, count as i64)
    }

    /// `(x, stop, fold, out)`: those that are kept, or one empty string.
    fn text_keep(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let (kept, out) = (self.kept(a)?, self.tensor(arg(a, 3))?);
        for i in 0..self.elements(out.shape)? {
            self.put_text(out, i, kept.get(i).map_or("", |s| s))?;
        }
        Ok(())
    }

    fn pieces(&self, a: &[Operand]) -> Result<Vec<Vec<String>>, Fail> {
        let (x, delimiter, most) = (self.tensor(arg(a, 0))?, self.tensor(arg(a, 1))?, self.int(arg(a, 2))?);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let delimiter = String::from(self.text(delimiter, 0)?);
        Ok(self.owned(x)?.iter().map(|s| split(s, &delimiter, most)).collect())
    }

    /// `(x, delimiter, most, out)`: the most pieces that a string has; negative `most`: as many as there are.
    fn text_split_count(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let most = self.pieces(a)?.iter().map(Vec::len).max().unwrap_or(0);
        let out = self.tensor(arg(a, 3))?;
        self.put(out, 0, most as i64)
    }

    /// `(x, delimiter, most, pieces, counts)`: the pieces of each string, then empty strings; how many they are.
    fn text_split(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let all = self.pieces(a)?;
        let (pieces, counts) = (self.tensor(arg(a, 3))?, self.tensor(arg(a, 4))?);
        let width = self.elements(pieces.shape)? / all.len().max(1);
        for (i, own) in all.iter().enumerate() {
            for k in 0..width {
                self.put_text(pieces, i * width + k, own.get(k).map_or("", |s| s))?;
            }
            self.put(counts, i, own.len() as i64)?;
        }
        Ok(())
    }

    /// `(x, out)`: numbers as strings.
    fn text_format(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let (x, out) = (self.tensor(arg(a, 0))?, self.tensor(arg(a, 1))?);
        let mut s = String::new();
        for i in 0..self.elements(out.shape)? {
            s.clear();
            let written = match x.dtype {
                DType::F32 => write!(s, "{}", Float::Single(self.number(x, i)?)),
                DType::F64 => write!(s, "{}", Float::Double(self.number(x, i)?)),
                DType::I64 => write!(s, "{}", self.number::<i64>(x, i)?),
                _ => write!(s, "{}", self.number::<u64>(x, i)?),
            };
            written.map_err(|_| self.malformed("a number cannot be written"))?;
            self.put_text(out, i, &s)?;
        }
        Ok(())
    }

    /// An element of a tensor of this dtype.
    fn number<T: crate::Element>(&self, t: TensorRef, i: usize) -> Result<T, Fail> {
        if t.dtype != T::DTYPE || i >= self.elements(t.shape)? {
            return Err(self.malformed("a number of this dtype cannot be written"));
        }
        // SAFETY: in bounds, of this type, alive and initialised as the program says.
        Ok(unsafe { t.data.cast::<T>().add(i).read_unaligned() })
    }

    /// `(x, bits, name, out)`: strings as numbers.
    fn text_parse(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let (x, bits, out) = (self.tensor(arg(a, 0))?, self.int(arg(a, 1))?, self.tensor(arg(a, 3))?);
        let node = name(self, arg(a, 2))?;
        let (high, low) = (1i128 << bits.clamp(1, 64), 1i128 << (bits.clamp(1, 64) - 1));
        for i in 0..self.elements(out.shape)? {
            macro_rules! integer {
                ($rust:ty, $least:expr, $most:expr) => {
                    match number::int(self.text(x, i)?, $least, $most).and_then(|v| <$rust>::try_from(v).ok()) {
                        Some(v) => self.put(out, i, v).map(|()| true)?,
                        None => false,
                    }
                };
            }
            let done = match out.dtype {
                DType::F32 | DType::F64 => match number::float(self.text(x, i)?) {
                    Some(v) if out.dtype == DType::F32 => self.put(out, i, v as f32).map(|()| true)?,
                    Some(v) => self.put(out, i, v).map(|()| true)?,
                    None => false,
                },
                DType::BOOL => match number::truth(self.text(x, i)?) {
                    Some(v) => self.put(out, i, v).map(|()| true)?,
                    None => false,
                },
                DType::I8 => integer!(i8, -low, low - 1),
                DType::I16 => integer!(i16, -low, low - 1),
                DType::I32 => integer!(i32, -low, low - 1),
                DType::I64 => integer!(i64, -low, low - 1),
                DType::U8 => integer!(u8, 0, high - 1),
                DType::U16 => integer!(u16, 0, high - 1),
                DType::U32 => integer!(u32, 0, high - 1),
                DType::U64 => integer!(u64, 0, high - 1),
                _ => return Err(self.malformed("a number of this dtype cannot be read")),
            };
            if !done {
                return Err(self.fail(Error::NotANumber { node, position: i, dtype: out.dtype }));
            }
        }
        Ok(())
    }

    /// `(x, pattern, out)`: whether the pattern matches all of a string.
    fn text_match(&mut self, a: &[Operand]) -> Result<(), Fail> {
        let (x, pattern, out) = (self.tensor(arg(a, 0))?, self.tensor(arg(a, 1))?, self.tensor(arg(a, 2))?);
        #[cfg(feature = "regex")]
        {
            let pattern = alloc::format!("\\A(?:{})\\z", self.text(pattern, 0)?);
            let Ok(pattern) = regex::Regex::new(&pattern) else {
                return Err(self.fail(Error::Text { message: "a regular expression is malformed" }));
            };
            for i in 0..self.elements(out.shape)? {
                let matches = pattern.is_match(self.text(x, i)?);
                self.put(out, i, matches)?;
            }
            Ok(())
        }
        #[cfg(not(feature = "regex"))]
        {
            let _ = (x, pattern, out);
            Err(self.fail(Error::Text { message: "regular expressions need the feature `regex` of tvm-runtime" }))
        }
    }
}

#[cfg(feature = "alloc")]
fn cased(s: &str, case: i64) -> String {
    match case {
        1 => s.to_lowercase(),
        2 => s.to_uppercase(),
        _ => s.into(),
    }
}

/// The pieces of a string after at most `most` splits; at runs of white space for an empty delimiter.
#[cfg(feature = "alloc")]
fn split(s: &str, delimiter: &str, most: usize) -> Vec<String> {
    let parts = most.saturating_add(1);
    if s.is_empty() {
        return Vec::new();
    }
    if !delimiter.is_empty() {
        return s.splitn(parts, delimiter).map(String::from).collect();
    }
    let (mut out, mut rest) = (Vec::new(), s.trim());
    while !rest.is_empty() {
        let cut = rest.find(char::is_whitespace).filter(|_| out.len() < most);
        let (piece, after) = rest.split_at(cut.unwrap_or(rest.len()));
        out.push(piece.into());
        rest = after.trim_start();
    }
    out
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_equal_numbers() {
        let mut texts = Texts::default();
        let (a, b) = (texts.intern("a"), texts.intern("b"));
        assert_eq!((texts.intern("a"), texts.intern("")), (a, Text::EMPTY));
        assert_eq!((texts.get(b), texts.get(Text(9)), texts.get(Text::EMPTY)), (Some("b"), None, Some("")));
    }

    #[test]
    fn splits() {
        assert_eq!(split("a,,b", ",", usize::MAX), ["a", "", "b"]);
        assert_eq!(split("a,b,c", ",", 1), ["a", "b,c"]);
        assert_eq!(split("  a  b c ", "", usize::MAX), ["a", "b", "c"]);
        assert_eq!(split(" a  b c ", "", 1), ["a", "b c"]);
        assert_eq!(split("", ",", 3), [""; 0]);
    }
}
