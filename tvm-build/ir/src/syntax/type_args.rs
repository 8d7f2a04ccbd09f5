//! Calls that take types: what `f::<A>(…)` of the Rust spelling stands for in TVMScript.

/// Where the types of a call stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeArgument {
    /// The keyword of the types.
    pub(super) keyword: &'static str,
    /// Their position, where they are given by position.
    pub(super) position: Option<usize>,
    /// The call takes a tuple of types even when there is one.
    #[cfg_attr(not(feature = "rust"), expect(dead_code, reason = "the printer takes any list"))]
    pub(super) tuple: bool,
}

const fn keyword(keyword: &'static str, tuple: bool) -> TypeArgument {
    TypeArgument { keyword, position: None, tuple }
}

const TYPE_ARGUMENTS: &[(&str, TypeArgument)] = &[
    ("R.call_tir", keyword("out_sinfo", false)),
    ("R.call_tir_inplace", keyword("out_sinfo", false)),
    ("R.call_dps_packed", keyword("out_sinfo", false)),
    ("R.call_packed", keyword("sinfo_args", true)),
    ("R.call_pure_packed", keyword("sinfo_args", true)),
    ("R.while_loop", keyword("out_sinfo", true)),
    ("R.match_cast", TypeArgument { keyword: "struct_info", position: Some(1), tuple: false }),
];

/// How a function takes types; `None` when it takes none.
pub(super) fn type_argument(path: &str) -> Option<TypeArgument> {
    TYPE_ARGUMENTS.iter().find(|(p, _)| *p == path).map(|(_, t)| *t)
}
