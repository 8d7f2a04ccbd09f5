//! The rules of the bytecode, checked over a whole program. The compiler does so with what it made.

use crate::abi::ALIGN;
use crate::bytecode::{Callee, Constant, Dim, Function, Instr, Operand, Param, Program, Reg, TensorType, Type, VOID};
use crate::error::Error;
use crate::tensor::elements;

impl Program {
    /// Checks every index, target, operand count, offset and frame size of the program.
    ///
    /// Without kernel tables, as in the compiler, `kernel_names` says how many kernels there are.
    /// What the kernels do cannot be checked.
    pub fn verify(&self) -> Result<(), Error> {
        let count = self.kernels.first().map_or(self.kernel_names.len(), |table| table.kernels.len());
        let ordered = self.kernels.windows(2).all(|pair| pair[0].level < pair[1].level);
        if !ordered || self.kernels.iter().any(|table| table.kernels.len() != count) {
            let rule = "kernel tables have one length and ascending levels";
            return Err(Error::Malformed { function: "", rule });
        }
        self.functions.iter().enumerate().try_for_each(|(index, function)| {
            let scope = Scope { program: self, function, index, kernels: count };
            scope.function().map_err(|rule| Error::Malformed { function: function.name, rule })
        })
    }
}

struct Scope<'a> {
    program: &'a Program,
    function: &'a Function,
    index: usize,
    kernels: usize,
}

type Checked = Result<(), &'static str>;

fn rule(holds: bool, rule: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(rule) }
}

impl Scope<'_> {
    fn function(&self) -> Checked {
        let f = self.function;
        rule(f.params.len() + f.outs.len() <= usize::from(f.registers), "parameters and outputs are registers")?;
        rule(f.registers < VOID, "too many registers")?;
        f.params.iter().chain(f.outs).try_for_each(|param| self.param(param))?;
        rule(matches!(f.code.last(), Some(Instr::Ret(_) | Instr::Goto(_))), "code ends with ret or goto")?;
        f.code.iter().try_for_each(|instr| self.instr(instr))?;
        let need = f.required_frame(&self.program.functions[..self.index]);
        rule(
            f.frame.registers >= need.registers
                && f.frame.ints >= need.ints
                && f.frame.pointers >= need.pointers
                && f.frame.arena >= need.arena,
            "the frame is smaller than required",
        )
    }

    fn instr(&self, instr: &Instr) -> Checked {
        let target = |target: u32| rule((target as usize) < self.function.code.len(), "a target leaves the code");
        match *instr {
            Instr::Ret(operand) => self.operand(operand, false),
            Instr::Goto(to) => target(to),
            Instr::If { cond, otherwise } => {
                self.operand(cond, false)?;
                target(otherwise)
            }
            Instr::Call { dst, callee, args } => {
                rule(dst == VOID || dst < self.function.registers, "no such register")?;
                let types = matches!(callee, Callee::Builtin(_));
                args.iter().try_for_each(|&operand| self.operand(operand, types))?;
                match callee {
                    Callee::Kernel(i) => rule(usize::from(i) < self.kernels, "no such kernel"),
                    Callee::Extern(i) => rule(usize::from(i) < self.program.externs.len(), "no such external function"),
                    Callee::Builtin(b) => {
                        let fixed = b.params.len() - usize::from(b.variadic);
                        let fits = if b.variadic { args.len() >= fixed } else { args.len() == fixed };
                        rule(fits, "a builtin has the wrong number of operands")
                    }
                    Callee::Function(i) => {
                        rule(usize::from(i) < self.index, "a callee must come before its caller")?;
                        let callee = &self.program.functions[usize::from(i)];
                        let count = callee.params.len() + callee.outs.len();
                        let slot = args.len() == count + 1 && matches!(args.last(), Some(Operand::Imm(_)));
                        rule(args.len() == count || slot, "a call has the wrong number of operands")
                    }
                }
            }
        }
    }

    fn operand(&self, operand: Operand, types: bool) -> Checked {
        match operand {
            Operand::Imm(_) | Operand::None => Ok(()),
            Operand::Reg(reg) => self.reg(reg),
            Operand::Out(i) => rule(usize::from(i) < self.function.outs.len(), "no such output"),
            Operand::Const(i) => match self.program.constants.get(usize::from(i)) {
                None => Err("no such constant"),
                Some(Constant::Weight { offset, ty }) => block(*offset, ty, self.program.weight_bytes),
                Some(Constant::Arena { offset, ty }) => block(*offset, ty, self.function.arena_bytes),
                Some(Constant::DType(_)) => rule(types, "a type is not a value"),
                Some(Constant::Param(param)) => rule(types, "a type is not a value").and(self.param(param)),
                Some(_) => Ok(()),
            },
        }
    }

    fn reg(&self, reg: Reg) -> Checked {
        rule(reg < self.function.registers, "no such register")
    }

    fn param(&self, param: &Param) -> Checked {
        let dim = |dim: &Dim| match *dim {
            Dim::Bind(reg, _) | Dim::Same(reg, _) => self.reg(reg),
            Dim::Imm(_) | Dim::Any => Ok(()),
        };
        match &param.ty {
            Type::Tensor { shape: Some(dims), .. } | Type::Shape(Some(dims)) => dims.iter().try_for_each(dim),
            Type::Int(one) => dim(one),
            _ => Ok(()),
        }
    }
}

/// Whether a tensor lies in a block of memory, aligned.
fn block(offset: usize, ty: &TensorType, len: usize) -> Checked {
    let bytes = elements(ty.shape).and_then(|n| ty.dtype.storage_bytes(n));
    let end = bytes.and_then(|bytes| offset.checked_add(bytes));
    rule(end.is_some_and(|end| end <= len), "a tensor leaves the arena or the weights")?;
    rule(offset % ALIGN == 0, "a tensor is not aligned")
}
