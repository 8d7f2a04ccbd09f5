use super::*;
use std::string::ToString;

#[test]
fn programs_print_like_vm_text() {
    static FUNCTIONS: [Function; 1] = [function(
        "main",
        &[],
        &[],
        &[
            Instr::Call { dst: 1, callee: Callee::Builtin(&builtin::SHAPE_OF), args: &[Operand::Reg(0)] },
            Instr::Call {
                dst: VOID,
                callee: Callee::Kernel(0),
                args: &[Operand::Reg(0), Operand::Const(1), Operand::Imm(-3), Operand::Out(0)],
            },
            Instr::If { cond: Operand::Reg(1), otherwise: 4 },
            Instr::Goto(0),
            Instr::Ret(Operand::None),
        ],
    )];
    let expected = "\
@main:
    0  call  vm.builtin.shape_of in: %0 dst: %1
    1  call  add4             in: %0, c[1], i-3, out[0] dst: %void
    2  if    %1 else 4
    3  goto  0
    4  ret   none
";
    assert_eq!(program(&FUNCTIONS, &[]).to_string(), expected);
    assert_eq!(FUNCTIONS[0].code[1].to_string(), "call  kernel[0] in: %0, c[1], i-3, out[0] dst: %void");
}

#[test]
fn builtins_have_distinct_names() {
    let mut names: std::vec::Vec<_> = builtin::ALL.iter().map(|(_, b)| b.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    for (path, one) in builtin::ALL {
        assert_eq!(one.name, std::format!("vm.builtin.{}", path.to_lowercase()));
    }
    assert!(builtin::MAKE_SHAPE.variadic && builtin::MAKE_SHAPE.params == ["slot", "dims"]);
    assert!(!builtin::ADD.variadic && builtin::ADD.params == ["a", "b"]);
}

#[test]
fn header_and_rust_agree() {
    for line in [
        "#define TVM_ALIGN 64",
        "TVM_CODE_INT = 0,",
        "TVM_CODE_UINT = 1,",
        "TVM_CODE_FLOAT = 2,",
        "TVM_CODE_BFLOAT = 4,",
        "TVM_CODE_BOOL = 6",
    ] {
        assert!(C_HEADER.contains(line), "{line}");
    }
    let codes = [TypeCode::Int, TypeCode::UInt, TypeCode::Float, TypeCode::Handle, TypeCode::BFloat, TypeCode::Bool];
    assert_eq!(codes.map(|code| code as u8), [0, 1, 2, 3, 4, 6]);
    assert_eq!((ALIGN, size_of::<Context>()), (64, 4 * size_of::<usize>()));
}
