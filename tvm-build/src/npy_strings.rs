//! Strings in NumPy's `.npy` arrays: of a fixed width, as Unicode (`<U5`) or bytes (`|S5`), or as objects (`|O`), which
//! NumPy pickles.

/// An array of strings in main memory, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<u64>,
    /// The elements.
    pub strings: Vec<String>,
}

/// Characters of four bytes, `width` of them a string, filled up with zeros.
pub(crate) fn unicode(data: &[u8], width: usize, big_endian: bool) -> Result<String, String> {
    let character = |c: &[u8]| {
        let bytes = <[u8; 4]>::try_from(c).ok()?;
        char::from_u32(if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let all: Option<String> = data.chunks_exact(4).take(width).map(character).collect();
    let all = all.ok_or("a string holds what is no Unicode character")?;
    Ok(all.trim_end_matches('\0').to_owned())
}

/// Bytes of UTF-8, filled up with zeros.
pub(crate) fn bytes(data: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(data).map_err(|_| "the bytes of a string are not UTF-8")?;
    Ok(text.trim_end_matches('\0').to_owned())
}

/// The type string and the data of strings: Unicode as wide as the longest. Zeros at a string's end, which such arrays do
/// not keep, are an error.
pub(crate) fn write(strings: &[String]) -> Result<(String, Vec<u8>), String> {
    if let Some(lossy) = strings.iter().find(|s| s.ends_with('\0')) {
        return Err(format!("{lossy:?} ends with a zero, which an array of strings does not keep"));
    }
    let width = strings.iter().map(|s| s.chars().count()).max().unwrap_or(0).max(1);
    let mut data = Vec::new();
    for s in strings {
        let mut left = width;
        for c in s.chars() {
            data.extend_from_slice(&u32::from(c).to_le_bytes());
            left -= 1;
        }
        data.resize(data.len() + 4 * left, 0);
    }
    Ok((format!("<U{width}"), data))
}

/// What matters of a pickled value.
#[derive(Clone)]
enum Item {
    Text(String),
    Tuple(Vec<Item>),
    /// By its number: lists are changed after they were put on the stack.
    List(usize),
    Other,
    Mark,
}

/// Deepest stack and most values of a memo; a pickled array of strings takes a few, and as many as it has strings.
const MAX_ITEMS: usize = 1 << 28;

/// The strings of a pickled array of objects, in row-major order. Only strings and bytes are read: nothing is called, whatever the
/// file says. The error is a sentence.
pub(crate) fn objects(data: &[u8]) -> Result<Vec<String>, String> {
    let mut reader = Pickle { rest: data, stack: Vec::new(), lists: Vec::new(), memo: Vec::new() };
    reader.run().ok_or_else(|| "the objects of the array are not strings, or not pickled as NumPy does".to_owned())
}

struct Pickle<'a> {
    rest: &'a [u8],
    stack: Vec<Item>,
    lists: Vec<Vec<Item>>,
    memo: Vec<Item>,
}

impl<'a> Pickle<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(head)
    }

    /// A number of `n` bytes.
    fn number(&mut self, n: usize) -> Option<usize> {
        let bytes = self.take(n)?;
        usize::try_from(bytes.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b))).ok()
    }

    fn text(&mut self, width: usize) -> Option<Item> {
        let n = self.number(width)?;
        Some(Item::Text(std::str::from_utf8(self.take(n)?).ok()?.to_owned()))
    }

    fn line(&mut self) -> Option<()> {
        let end = self.rest.iter().position(|b| *b == b'\n')?;
        self.take(end + 1).map(|_| ())
    }

    /// What stands on the stack above the last mark.
    fn marked(&mut self) -> Option<Vec<Item>> {
        let at = self.stack.iter().rposition(|i| matches!(i, Item::Mark))?;
        let all = self.stack.split_off(at + 1);
        self.stack.pop()?;
        Some(all)
    }

    fn top(&mut self, n: usize) -> Option<Vec<Item>> {
        Some(self.stack.split_off(self.stack.len().checked_sub(n)?))
    }

    fn store(&mut self, at: usize) -> Option<()> {
        let item = self.stack.last()?.clone();
        match at.checked_sub(self.memo.len())? {
            0 => self.memo.push(item),
            _ => return None,
        }
        Some(())
    }

    fn load(&mut self, at: usize) -> Option<()> {
        let item = self.memo.get(at)?.clone();
        self.stack.push(item);
        Some(())
    }

    fn extend(&mut self, items: Vec<Item>) -> Option<()> {
        let Some(Item::List(list)) = self.stack.last() else { return None };
        self.lists.get_mut(*list)?.extend(items);
        Some(())
    }

    fn run(&mut self) -> Option<Vec<String>> {
        loop {
            if self.stack.len() > MAX_ITEMS || self.memo.len() > MAX_ITEMS {
                return None;
            }
            let code = *self.take(1)?.first()?;
            let pushed = match code {
                b'.' => break,
                // Where the protocol and a frame begin.
                0x80 => {
                    self.take(1)?;
                    continue;
                }
                0x95 => {
                    self.take(8)?;
                    continue;
                }
                b'c' => {
                    self.line()?;
                    self.line()?;
                    Item::Other
                }
                0x93 => {
                    self.top(2)?;
                    Item::Other
                }
                0x8c => self.text(1)?,
                b'X' => self.text(4)?,
                0x8d => self.text(8)?,
                b'C' => self.text(1).unwrap_or(Item::Other),
                b'B' => self.text(4).unwrap_or(Item::Other),
                b'K' => self.take(1).map(|_| Item::Other)?,
                b'M' => self.take(2).map(|_| Item::Other)?,
                b'J' => self.take(4).map(|_| Item::Other)?,
                0x8a => {
                    let n = self.number(1)?;
                    self.take(n).map(|_| Item::Other)?
                }
                b'N' | 0x88 | 0x89 => Item::Other,
                b')' => Item::Tuple(Vec::new()),
                0x85..=0x87 => Item::Tuple(self.top(usize::from(code - 0x84))?),
                b't' => Item::Tuple(self.marked()?),
                b'(' => Item::Mark,
                b']' => {
                    self.lists.push(Vec::new());
                    Item::List(self.lists.len() - 1)
                }
                b'R' => {
                    self.top(2)?;
                    Item::Other
                }
                // The state of an array ends with its items, the state of a type does not.
                b'b' => match self.top(2)?.pop()? {
                    Item::Tuple(mut state) => match state.pop() {
                        Some(list @ Item::List(_)) => list,
                        _ => Item::Other,
                    },
                    _ => return None,
                },
                0x94 => {
                    self.store(self.memo.len())?;
                    continue;
                }
                b'q' => {
                    let at = self.number(1)?;
                    self.store(at)?;
                    continue;
                }
                b'r' => {
                    let at = self.number(4)?;
                    self.store(at)?;
                    continue;
                }
                b'h' => {
                    let at = self.number(1)?;
                    self.load(at)?;
                    continue;
                }
                b'j' => {
                    let at = self.number(4)?;
                    self.load(at)?;
                    continue;
                }
                b'a' => {
                    let items = self.top(1)?;
                    self.extend(items)?;
                    continue;
                }
                b'e' => {
                    let items = self.marked()?;
                    self.extend(items)?;
                    continue;
                }
                _ => return None,
            };
            self.stack.push(pushed);
        }
        let Some(Item::List(list)) = self.stack.pop() else { return None };
        let items = self.lists.get_mut(list).map(std::mem::take)?;
        let text = |item| match item {
            Item::Text(s) => Some(s),
            _ => None,
        };
        items.into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_widths() {
        let all = ["a".to_owned(), "häß🦀".to_owned(), String::new()];
        let (descr, data) = write(&all).unwrap();
        assert_eq!((descr.as_str(), data.len()), ("<U4", 48));
        let read: Result<Vec<String>, String> = data.chunks(16).map(|c| unicode(c, 4, false)).collect();
        assert_eq!(read.unwrap(), all);
        assert_eq!(unicode(&[0, 0, 0, b'x'], 1, true).unwrap(), "x");
        assert_eq!(bytes(b"ab\0\0").unwrap(), "ab");
        assert!(unicode(&[0, 0, 0, 0xff], 1, false).is_err() && bytes(&[0xff]).is_err());
        assert!(write(&["x\0".to_owned()]).unwrap_err().contains("zero"));
    }

    /// `np.array(["a", "bc", "a"], object)`, as `numpy.save` pickles it.
    const PICKLED: &[u8] = b"\x80\x04\x95\x95\0\0\0\0\0\0\0\x8c\x16numpy._core.multiarray\x94\x8c\x0c_reconstruct\x94\x93\x94\
        \x8c\x05numpy\x94\x8c\x07ndarray\x94\x93\x94K\0\x85\x94C\x01b\x94\x87\x94R\x94(K\x01K\x03\x85\x94h\x03\x8c\x05dtype\x94\x93\x94\
        \x8c\x02O8\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?t\x94b\x89]\x94\
        (\x8c\x01a\x94\x8c\x02bc\x94h\x13et\x94b.";

    #[test]
    fn pickled_objects() {
        assert_eq!(objects(PICKLED).unwrap(), ["a", "bc", "a"]);
        for n in 0..PICKLED.len() {
            assert!(objects(&PICKLED[..n]).is_err());
            let mut damaged = PICKLED.to_vec();
            damaged[n] ^= 0x55;
            let _ = objects(&damaged);
        }
        // A list of numbers, and a call.
        assert!(objects(b"\x80\x04](K\x01K\x02e.").is_err());
        assert!(objects(b"cos\nsystem\n(X\x02\0\0\0lstR.").is_err());
    }
}
