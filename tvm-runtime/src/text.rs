//! Programs as text, in the manner of TVM's VM executable.

use crate::bytecode::{Callee, Function, Instr, Operand, Program, Reg, VOID};
use core::fmt;

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Reg(reg) => register(f, *reg),
            Operand::Const(i) => write!(f, "c[{i}]"),
            Operand::Imm(value) => write!(f, "i{value}"),
            Operand::Out(i) => write!(f, "out[{i}]"),
            Operand::None => f.write_str("none"),
        }
    }
}

fn register(f: &mut fmt::Formatter<'_>, reg: Reg) -> fmt::Result {
    if reg == VOID { f.write_str("%void") } else { write!(f, "%{reg}") }
}

/// The instruction with numbers for kernels and functions; a [`Program`] prints their names.
impl fmt::Display for Instr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        instr(f, self, None)
    }
}

fn instr(f: &mut fmt::Formatter<'_>, instr: &Instr, program: Option<&Program>) -> fmt::Result {
    match instr {
        Instr::Call { dst, callee, args } => {
            f.write_str("call  ")?;
            let (kind, index, name) = match callee {
                Callee::Builtin(builtin) => ("", 0, Some(builtin.name)),
                Callee::Kernel(i) => ("kernel", *i, program.and_then(|p| p.kernel_names.get(usize::from(*i)).copied())),
                Callee::Function(i) => {
                    ("function", *i, program.and_then(|p| p.functions.get(usize::from(*i))).map(|x| x.name))
                }
                Callee::Extern(i) => {
                    ("extern", *i, program.and_then(|p| p.externs.get(usize::from(*i))).map(|x| x.name))
                }
            };
            match name {
                Some(name) => write!(f, "{name:<16}")?,
                None => write!(f, "{kind}[{index}]")?,
            }
            f.write_str(" in: ")?;
            for (i, arg) in args.iter().enumerate() {
                let comma = if i == 0 { "" } else { ", " };
                write!(f, "{comma}{arg}")?;
            }
            f.write_str(" dst: ")?;
            register(f, *dst)
        }
        Instr::Ret(operand) => write!(f, "ret   {operand}"),
        Instr::Goto(target) => write!(f, "goto  {target}"),
        Instr::If { cond, otherwise } => write!(f, "if    {cond} else {otherwise}"),
    }
}

fn function(f: &mut fmt::Formatter<'_>, function: &Function, program: Option<&Program>) -> fmt::Result {
    writeln!(f, "@{}:", function.name)?;
    for (pc, one) in function.code.iter().enumerate() {
        write!(f, "  {pc:>3}  ")?;
        instr(f, one, program)?;
        writeln!(f)?;
    }
    Ok(())
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        function(f, self, None)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, one) in self.functions.iter().enumerate() {
            if i != 0 {
                writeln!(f)?;
            }
            function(f, one, Some(self))?;
        }
        Ok(())
    }
}
