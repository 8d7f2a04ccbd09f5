//! Tables as Rust text.

use crate::external::Declaration;
use crate::vm::dtype::element_type;
use std::fmt::Write;
use tvm_runtime::{
    Callee, Constant, DType, Dim, FrameSize, Function, Instr, IsaLevel, Operand, Param, Program, TensorType, Type,
    TypeCode, VOID, builtin,
};

/// `[a, b]` of printed items.
fn list<T>(items: &[T], f: impl Fn(&T) -> String) -> String {
    format!("&[{}]", items.iter().map(f).collect::<Vec<_>>().join(", "))
}

pub(super) fn dtype(d: DType) -> String {
    if let Some(e) = element_type(d) {
        return format!("DType::{}", e.constant);
    }
    let code = match d.code {
        TypeCode::Int => "Int",
        TypeCode::UInt => "UInt",
        TypeCode::Float => "Float",
        TypeCode::Handle => "Handle",
        TypeCode::BFloat => "BFloat",
        TypeCode::Bool => "Bool",
        TypeCode::Float8E4M3FN => "Float8E4M3FN",
        TypeCode::Float8E4M3FNUZ => "Float8E4M3FNUZ",
        TypeCode::Float8E5M2 => "Float8E5M2",
        TypeCode::Float8E5M2FNUZ => "Float8E5M2FNUZ",
        TypeCode::Float8E8M0FNU => "Float8E8M0FNU",
        TypeCode::Float4E2M1FN => "Float4E2M1FN",
        TypeCode::Text => "Text",
    };
    format!("DType {{ code: TypeCode::{code}, bits: {}, lanes: {} }}", d.bits, d.lanes)
}

fn tensor_type(ty: &TensorType) -> String {
    format!("TensorType {{ dtype: {}, shape: &{:?} }}", dtype(ty.dtype), ty.shape)
}

fn dim(d: &Dim) -> String {
    match d {
        Dim::Imm(v) => format!("Dim::Imm({v})"),
        Dim::Bind(reg, name) => format!("Dim::Bind({reg}, {name:?})"),
        Dim::Same(reg, name) => format!("Dim::Same({reg}, {name:?})"),
        Dim::Any => "Dim::Any".into(),
    }
}

fn ty(t: &Type) -> String {
    let dims = |d: &Option<&'static [Dim]>| d.map_or("None".to_string(), |d| format!("Some({})", list(d, dim)));
    match t {
        Type::Any => "Type::Any".into(),
        Type::Tensor { dtype: d, shape } => {
            let d = d.map_or("None".to_string(), |d| format!("Some({})", dtype(d)));
            format!("Type::Tensor {{ dtype: {d}, shape: {} }}", dims(shape))
        }
        Type::Shape(d) => format!("Type::Shape({})", dims(d)),
        Type::Int(d) => format!("Type::Int({})", dim(d)),
        Type::Float => "Type::Float".into(),
        Type::Bool => "Type::Bool".into(),
        Type::List => "Type::List".into(),
    }
}

fn param(p: &Param) -> String {
    format!("Param {{ name: {:?}, ty: {} }}", p.name, ty(&p.ty))
}

fn constant(c: &Constant) -> String {
    match c {
        Constant::Weight { offset, ty } => format!("Constant::Weight {{ offset: {offset}, ty: {} }}", tensor_type(ty)),
        Constant::Arena { offset, ty } => format!("Constant::Arena {{ offset: {offset}, ty: {} }}", tensor_type(ty)),
        Constant::Shape(dims) => format!("Constant::Shape(&{dims:?})"),
        Constant::Int(v) => format!("Constant::Int({v})"),
        Constant::Float(v) if v.is_finite() => format!("Constant::Float({v:?})"),
        Constant::Float(v) => format!("Constant::Float(f64::from_bits({:#x}))", v.to_bits()),
        Constant::Bool(v) => format!("Constant::Bool({v})"),
        Constant::DType(d) => format!("Constant::DType({})", dtype(*d)),
        Constant::Param(p) => format!("Constant::Param({})", param(p)),
    }
}

fn operand(o: &Operand) -> String {
    match o {
        Operand::Reg(r) => format!("Operand::Reg({r})"),
        Operand::Const(i) => format!("Operand::Const({i})"),
        Operand::Imm(v) => format!("Operand::Imm({v})"),
        Operand::Out(i) => format!("Operand::Out({i})"),
        Operand::None => "Operand::None".into(),
    }
}

fn instr(i: &Instr) -> String {
    match i {
        Instr::Call { dst, callee, args } => {
            let dst = if *dst == VOID { "VOID".to_string() } else { dst.to_string() };
            let callee = match callee {
                Callee::Kernel(k) => format!("Kernel({k})"),
                Callee::Function(k) => format!("Function({k})"),
                Callee::Extern(k) => format!("Extern({k})"),
                Callee::Builtin(b) => {
                    let name = builtin::ALL.iter().find(|(_, x)| x == b).map_or("COPY", |(name, _)| name);
                    format!("Builtin(&builtin::{name})")
                }
            };
            format!("Instr::Call {{ dst: {dst}, callee: Callee::{callee}, args: {} }}", list(args, operand))
        }
        Instr::Ret(o) => format!("Instr::Ret({})", operand(o)),
        Instr::Goto(t) => format!("Instr::Goto({t})"),
        Instr::If { cond, otherwise } => format!("Instr::If {{ cond: {}, otherwise: {otherwise} }}", operand(cond)),
    }
}

fn function(out: &mut String, f: &Function, program: &Program) {
    let FrameSize { registers, ints, pointers, arena } = f.frame;
    let _ = writeln!(out, "        Function {{\n            name: {:?},", f.name);
    let _ = writeln!(out, "            params: {},", list(f.params, param));
    let _ = writeln!(out, "            outs: {},", list(f.outs, param));
    let _ = writeln!(out, "            registers: {},\n            heap: {},", f.registers, f.heap);
    let _ = writeln!(out, "            arena_bytes: {},", f.arena_bytes);
    let _ = writeln!(out, "            workspace_bytes: {},", f.workspace_bytes);
    let _ = writeln!(
        out,
        "            frame: FrameSize {{ registers: {registers}, ints: {ints}, pointers: {pointers}, arena: {arena} }},"
    );
    let _ = writeln!(out, "            code: &[");
    for i in f.code {
        let name = match i {
            Instr::Call { callee: Callee::Kernel(k), .. } => program.kernel_names.get(usize::from(*k)),
            _ => None,
        };
        let note = name.map_or(String::new(), |n| format!(" // {}", tvm_ir::syntax::rust::names::comment(n)));
        let _ = writeln!(out, "                {},{note}", instr(i));
    }
    let _ = writeln!(out, "            ],\n        }},");
}

fn level(l: IsaLevel) -> &'static str {
    match l {
        IsaLevel::Baseline => "Baseline",
        IsaLevel::V3 => "V3",
        IsaLevel::V4 => "V4",
    }
}

/// The statics of a program; `levels` are the symbols of its kernels for each level.
pub(super) fn program(out: &mut String, program: &Program, levels: &[super::Level], externs: &[Declaration]) {
    let _ = writeln!(out, "    static FUNCTIONS: [Function; {}] = [", program.functions.len());
    program.functions.iter().for_each(|f| function(out, f, program));
    let _ = writeln!(out, "    ];\n\n    static CONSTANTS: [Constant; {}] = [", program.constants.len());
    for c in program.constants {
        let _ = writeln!(out, "        {},", constant(c));
    }
    let _ = writeln!(out, "    ];\n\n    static KERNELS: [KernelTable; {}] = [", levels.len());
    for l in levels {
        let _ = writeln!(out, "        KernelTable {{ level: IsaLevel::{}, kernels: &[", level(l.level));
        for symbol in &l.symbols {
            let _ = writeln!(out, "            {symbol},");
        }
        let _ = writeln!(out, "        ] }},");
    }
    let external = |(i, d): (usize, &Declaration)| {
        format!("Extern {{ name: {:?}, call: {} }}", d.name.as_str(), super::externs::caller(i))
    };
    let externs = externs.iter().enumerate().map(external).collect::<Vec<_>>();
    let _ = write!(
        out,
        "    ];\n\n    /// The tables of this module.\n    pub static PROGRAM: Program = Program {{\n        \
         functions: &FUNCTIONS,\n        constants: &CONSTANTS,\n        kernels: &KERNELS,\n        \
         kernel_names: &{:?},\n        externs: &[{}],\n        messages: &{:?},\n        \
         weight_bytes: WEIGHT_BYTES,\n    }};\n",
        program.kernel_names,
        externs.join(", "),
        program.messages
    );
}
