//! Where allocated buffers live: small ones on the stack, the others in the kernel's workspace, placed by liveness.

use crate::tir_tools::touches;
use tvm_ir::diag::Diag;
use tvm_ir::lowered::Space;
use tvm_ir::prim::{Buffer, Scope};
use tvm_ir::tir::{ForKind, Stmt};

/// Bytes of stack that a kernel's buffers may take together.
pub const MAX_STACK: u64 = 16 << 10;

/// Alignment of workspace buffers in bytes.
pub const ALIGN: u64 = 64;

/// The place of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// An array declared where the buffer is allocated.
    Array {
        /// Elements.
        len: u64,
        /// Memory space.
        space: Space,
    },
    /// A range of the workspace.
    Workspace {
        /// Bytes from its start.
        offset: u64,
    },
}

/// The places of all buffers that a body allocates.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    places: Vec<(Buffer, Place)>,
    /// Bytes of workspace.
    pub workspace: u64,
}

impl Storage {
    /// The place of an allocated buffer.
    pub fn place(&self, b: &Buffer) -> Option<Place> {
        self.places.iter().find(|(x, _)| x == b).map(|(_, p)| *p)
    }
}

struct Alloc {
    buffer: Buffer,
    len: u64,
    bytes: u64,
    /// First and last statement (in order of text) at which it is alive.
    live: (usize, usize),
    in_parallel: bool,
}

/// Decides the place of every allocated buffer of a flat body. Errors name the buffer whose size is not a constant or
/// too large, or that is allocated on several threads and too large for the stack.
pub fn plan(body: &Stmt) -> Result<Storage, Diag> {
    let mut allocs = Vec::new();
    let mut clock = 0;
    collect(body, &mut clock, false, &mut allocs)?;
    let mut storage = Storage::default();
    let mut stack = 0u64;
    let mut placed: Vec<(u64, u64, (usize, usize))> = Vec::new();
    // Registers first: what is private to a thread gains most from the stack.
    let (local, other): (Vec<_>, Vec<_>) = allocs.into_iter().partition(|a| a.buffer.scope == Scope::Local);
    for a in local.into_iter().chain(other) {
        let shared = matches!(a.buffer.scope, Scope::Shared | Scope::SharedDyn);
        let fits = stack.checked_add(a.bytes).is_some_and(|t| t <= MAX_STACK);
        let place = if shared || fits {
            stack += if shared { 0 } else { a.bytes };
            Place::Array { len: a.len, space: if shared { Space::Shared } else { Space::Local } }
        } else if a.in_parallel {
            return Err(Diag::error(
                a.buffer.span,
                format!("buffer {} of {} bytes is allocated inside a parallel loop", a.buffer.name, a.bytes),
            )
            .help(format!("allocate it outside of the loop, or keep a thread's buffers within {MAX_STACK} bytes")));
        } else {
            let offset = first_fit(&placed, a.bytes, a.live).ok_or_else(|| too_large(&a.buffer))?;
            placed.push((offset, a.bytes, a.live));
            let end = offset.checked_add(a.bytes).ok_or_else(|| too_large(&a.buffer))?;
            storage.workspace = storage.workspace.max(align(end).ok_or_else(|| too_large(&a.buffer))?);
            Place::Workspace { offset }
        };
        storage.places.push((a.buffer, place));
    }
    Ok(storage)
}

fn too_large(b: &Buffer) -> Diag {
    Diag::error(b.span, format!("buffer {} of shape {:?} is too large", b.name, b.shape))
}

fn align(bytes: u64) -> Option<u64> {
    bytes.checked_add(ALIGN - 1).map(|b| b / ALIGN * ALIGN)
}

/// The lowest aligned offset where nothing that is alive at the same time lies.
fn first_fit(placed: &[(u64, u64, (usize, usize))], bytes: u64, live: (usize, usize)) -> Option<u64> {
    let mut taken: Vec<_> =
        placed.iter().filter(|(_, _, l)| l.0 <= live.1 && live.0 <= l.1).map(|(o, b, _)| (*o, *b)).collect();
    taken.sort_unstable();
    let mut offset = 0u64;
    for (o, b) in taken {
        if offset.checked_add(bytes)? <= o {
            break;
        }
        offset = offset.max(align(o.checked_add(b)?)?);
    }
    Some(offset)
}

fn collect(s: &Stmt, clock: &mut usize, parallel: bool, out: &mut Vec<Alloc>) -> Result<(), Diag> {
    *clock += 1;
    match s {
        Stmt::Block(b) => {
            let parts: Vec<&Stmt> = match &b.body {
                Stmt::Seq(parts) => parts.iter().collect(),
                other => vec![other],
            };
            let first = out.len();
            for a in &b.allocs {
                out.push(alloc(a, parallel)?);
            }
            for part in parts {
                let start = *clock + 1;
                collect(part, clock, parallel, out)?;
                for (k, a) in b.allocs.iter().enumerate() {
                    if touches(part, a) {
                        let live = &mut out[first + k].live;
                        *live = (live.0.min(start), live.1.max(*clock));
                    }
                }
            }
        }
        Stmt::For(l) => collect(&l.body, clock, parallel || l.kind == ForKind::Parallel, out)?,
        other => {
            for c in other.children() {
                collect(c, clock, parallel, out)?;
            }
        }
    }
    Ok(())
}

fn alloc(b: &Buffer, in_parallel: bool) -> Result<Alloc, Diag> {
    let dims = b.shape.iter().map(|d| d.as_int().and_then(|v| u64::try_from(v).ok()));
    let len = dims.collect::<Option<Vec<u64>>>().ok_or_else(|| {
        Diag::error(b.span, format!("the size of buffer {} is not known at build time: {:?}", b.name, b.shape))
            .help("give the symbolic extents constant values, or let the caller allocate the buffer")
    })?;
    let len = len.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).ok_or_else(|| too_large(b))?;
    let bytes = b.dtype.storage_bytes(len).ok_or_else(|| too_large(b))?;
    Ok(Alloc { buffer: b.clone(), len, bytes, live: (usize::MAX, 0), in_parallel })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tvm_ir::dtype::DType;
    use tvm_ir::prim::PrimExpr;
    use tvm_ir::tir::Block;

    fn buffer(name: &str, len: i64) -> Buffer {
        Buffer::new(name, vec![PrimExpr::i64(len)], DType::F32)
    }

    fn copy(to: &Buffer, from: &Buffer) -> Stmt {
        let zero = || vec![PrimExpr::i64(0)];
        Stmt::store(to, zero(), PrimExpr::load(from, zero()))
    }

    #[test]
    fn dead_buffers_share() {
        let (a, b, c) = (buffer("a", 5000), buffer("b", 5000), buffer("c", 5000));
        let (x, small) = (buffer("x", 1), buffer("small", 7));
        let body = Stmt::seq([copy(&a, &x), copy(&b, &a), copy(&c, &b), copy(&small, &c), copy(&x, &small)]);
        let root = Stmt::Block(Box::new(Block::root(vec![a.clone(), b.clone(), c.clone(), small.clone()], body)));
        let s = plan(&root).unwrap();
        assert_eq!(s.place(&small), Some(Place::Array { len: 7, space: Space::Local }));
        assert_eq!(s.place(&a), Some(Place::Workspace { offset: 0 }));
        assert_eq!(s.place(&b), Some(Place::Workspace { offset: 20032 }));
        assert_eq!(s.place(&c), Some(Place::Workspace { offset: 0 }));
        assert_eq!(s.workspace, 40064);
    }

    #[test]
    fn symbolic_size_is_an_error() {
        let n = tvm_ir::prim::Var::new("n", DType::I64);
        let a = Buffer::new("a", vec![n.expr()], DType::F32);
        let root = Stmt::Block(Box::new(Block::root(vec![a.clone()], copy(&a, &a))));
        assert!(plan(&root).unwrap_err().message.contains("buffer a"));
    }
}
