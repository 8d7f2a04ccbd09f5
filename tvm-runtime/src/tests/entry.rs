//! What a call refuses.

use super::*;
use std::string::ToString;

const N: Dim = Dim::Bind(3, "n");
static FUNCTIONS: [Function; 1] = [function(
    "main",
    &[
        Param { name: "x", ty: Type::Tensor { dtype: Some(DType::F32), shape: Some(&[N, Dim::Imm(2)]) } },
        Param { name: "y", ty: Type::Tensor { dtype: None, shape: Some(&[Dim::Any, Dim::Same(3, "n")]) } },
    ],
    &[Param { name: "out", ty: Type::Tensor { dtype: Some(DType::F32), shape: None } }],
    &[Instr::Ret(Operand::Reg(3))],
)];
static PROGRAM: Program = program(&FUNCTIONS, &[]);

fn call(args: &[Arg<'_>]) -> Result<Value, Error> {
    let mut arena = Arena::<0>::new();
    // SAFETY: the program calls no kernel.
    unsafe { State::new(&PROGRAM, &[], &mut arena) }.call(0, args, &mut Room::new())
}

#[test]
fn errors_name_argument_and_symbol() {
    let f = [0f32; 12];
    let with = |x, y| {
        let mut out = [0f32; 1];
        let found = call(&[x, y, Arg::output(&mut out, &[1])]);
        found.map_err(|error| error.to_string())
    };
    let y = || Arg::input(&f, &[4, 3]);
    assert_eq!(with(Arg::input(&f[..6], &[3, 2]), y()), Ok(Value::Int(3)));
    let cases: [(Arg<'_>, Arg<'_>, &str); 9] = [
        (Arg::input(&[0i32; 6], &[3, 2]), y(), "`x` must have dtype float32, found int32"),
        (Arg::input(&f[..6], &[6]), y(), "`x` must have 2 dimensions, found 1"),
        (Arg::input(&f[..9], &[3, 3]), y(), "`x` must have extent 2 on axis 1, found 3"),
        (Arg::input(&f[..8], &[4, 2]), y(), "`y` must have extent n = 4 on axis 1, found 3"),
        (Arg::input(&f[..5], &[3, 2]), y(), "the shape of `x` has 6 elements, its buffer 5"),
        (Arg::input(&f[..6], &[-3, -2]), y(), "the shape of `x` has a negative extent or too many elements"),
        (Arg::input(&f, &[i64::MAX, 8]), y(), "the shape of `x` has a negative extent or too many elements"),
        (Arg::int(3), y(), "`x` must be a Tensor, found a Int"),
        (Arg::input(&f[..6], &[3, 2]), Arg::shape(&[4, 3]), "`y` must be a Tensor, found a Shape"),
    ];
    for (x, y, expected) in cases {
        assert_eq!(with(x, y), Err(expected.to_string()));
    }
}

#[test]
fn outputs_are_mutable_and_all_there() {
    let f = [0f32; 6];
    let args = || [Arg::input(&f, &[3, 2]), Arg::input(&f, &[2, 3])];
    let [x, y] = args();
    assert_eq!(call(&[x, y, Arg::input(&f, &[6])]), Err(Error::ReadOnly { argument: "out" }));
    assert_eq!(call(&args()), Err(Error::ArgumentCount { expected: 3, found: 2 }));
}

#[test]
fn extents_of_any_size_are_values() {
    assert_eq!(dim(7), 7);
    assert_eq!(dim(usize::MAX), i64::MAX);
}

/// Bytes that no machine has; under Miri, whose allocator does not fail but ends the program, that no allocation can have.
#[cfg(feature = "alloc")]
const NO_MEMORY: usize = if cfg!(miri) { usize::MAX } else { usize::MAX / 4 };

#[test]
#[cfg(feature = "alloc")]
fn an_arena_that_cannot_be_had_is_an_error() {
    let bytes = NO_MEMORY;
    let none: Result<usize, _> = Err(Error::ArenaMemory { bytes });
    assert_eq!(ArenaRef::try_heap(bytes).map(|arena| arena.len()), none);
    assert!(Error::ArenaMemory { bytes }.to_string().contains("no memory for an arena"));
    assert!(ArenaRef::try_heap(100).is_ok_and(|arena| arena.len() >= 100));
    // SAFETY: the program calls no kernel.
    let mut state = unsafe { State::new(&PROGRAM, &[], ArenaRef::heap(0)) };
    assert_eq!(state.reserve(usize::MAX), Err(Error::ArenaMemory { bytes: usize::MAX }));
    let (x, y, mut out) = ([0f32; 2], [0f32; 1], [0f32; 1]);
    let args = [Arg::input(&x, &[1, 2]), Arg::input(&y, &[1, 1]), Arg::output(&mut out, &[1])];
    assert!(state.call(0, &args, &mut Room::new()).is_ok(), "the state is as it was");
}

#[test]
#[cfg(feature = "host")]
fn a_session_owns_its_weights() {
    use crate::host::Session;
    use std::sync::Arc;

    static HUGE: [Function; 1] = [Function {
        arena_bytes: NO_MEMORY,
        frame: FrameSize { arena: NO_MEMORY, ..FUNCTIONS[0].frame },
        ..FUNCTIONS[0]
    }];
    static TOO_LARGE: Program = program(&HUGE, &[]);
    struct Shared(Arc<AlignedBytes>);
    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            self.0.as_slice()
        }
    }
    let weights = Arc::new(AlignedBytes::zeroed(100));
    // SAFETY: the program calls no kernel and reads no weights.
    let session = unsafe { Session::new(&PROGRAM, Shared(weights.clone())) };
    assert!(session.is_ok());
    assert_eq!(Arc::strong_count(&weights), 2);
    drop(session);
    assert_eq!(Arc::strong_count(&weights), 1);
    // SAFETY: as above.
    let failed = unsafe { Session::new(&TOO_LARGE, Shared(weights.clone())) };
    assert_eq!(failed.err(), Some(Error::ArenaMemory { bytes: NO_MEMORY }));
    assert_eq!(Arc::strong_count(&weights), 1);
}
