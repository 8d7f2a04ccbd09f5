//! Schedule rules: each looks at a block first (`plan`, printable) and acts second (`apply`). Ordered lists per device;
//! the last rule of a list applies to every block.

pub mod cpu;
mod inline;
mod nest;

use super::{BlockRV, Schedule};
use std::fmt;
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::name::Name;
use tvm_ir::target::{DeviceKind, Target};
use tvm_ir::tir::PrimFunc;

/// Attribute of a function that no rule touches any more (TVM's).
pub const IS_SCHEDULED: &str = "tir.is_scheduled";

/// Attribute of a scheduled function: its plans, in words.
pub const SCHEDULE_PLAN: &str = "schedule_plan";

/// A schedule rule for one block and the loops around it.
pub trait Rule: Sync {
    /// Its name in plans and reports.
    fn name(&self) -> &'static str;
    /// What the rule would do with a block; `None` when the block is not of its kind.
    fn plan(&self, sch: &Schedule, block: &BlockRV, target: &Target) -> Option<Plan>;
    /// Does what a plan of this rule says.
    fn apply(&self, sch: &mut Schedule, plan: &Plan) -> Result<(), Diag>;
}

/// What a rule does with a block. Plans are data: a search may change the numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The rule.
    pub rule: &'static str,
    /// The block.
    pub block: BlockRV,
    /// Iterations of the register tile, for loops that have one.
    pub tile: Vec<(Name, i64)>,
    /// The loop whose iterations become vector lanes.
    pub vector: Option<Name>,
    /// Loops that are written out.
    pub unroll: Vec<Name>,
    /// The elementwise block that is computed on the tile.
    pub epilogue: Option<BlockRV>,
    /// Loops that become one, outermost first.
    pub fuse: Vec<Name>,
    /// Iterations before which loops are cut, growing.
    pub cut: Vec<(Name, Vec<i64>)>,
    /// The reduction loop of which so many iterations are summed apart, and these sums added up.
    pub sums: Option<(Name, i64)>,
}

impl Plan {
    /// A plan that does nothing yet.
    pub fn new(rule: &'static str, block: &BlockRV) -> Plan {
        Plan {
            rule,
            block: block.clone(),
            tile: Vec::new(),
            vector: None,
            unroll: Vec::new(),
            epilogue: None,
            fuse: Vec::new(),
            cut: Vec::new(),
            sums: None,
        }
    }
}

impl fmt::Display for Plan {
    /// `matmul: block matmul, tile i0=6 i1=16, vectors along i1, epilogue compute`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: block {}", self.rule, self.block)?;
        if !self.fuse.is_empty() {
            write!(f, ", fuse")?;
            self.fuse.iter().try_for_each(|l| write!(f, " {l}"))?;
        }
        for (l, at) in &self.cut {
            write!(f, ", cut {l} at {at:?}")?;
        }
        if !self.tile.is_empty() {
            write!(f, ", tile")?;
            self.tile.iter().try_for_each(|(l, n)| write!(f, " {l}={n}"))?;
        }
        if let Some(v) = &self.vector {
            write!(f, ", vectors along {v}")?;
        }
        if !self.unroll.is_empty() {
            write!(f, ", unroll")?;
            self.unroll.iter().try_for_each(|l| write!(f, " {l}"))?;
        }
        if let Some((l, n)) = &self.sums {
            write!(f, ", sums over {l} of {n}")?;
        }
        if let Some(e) = &self.epilogue {
            write!(f, ", epilogue {e}")?;
        }
        Ok(())
    }
}

/// The rules of a target's device, in order.
pub fn rules_of(target: &Target) -> &'static [&'static dyn Rule] {
    match target.device {
        DeviceKind::Cpu => cpu::RULES,
    }
}

/// A function after its rules.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The function; its attributes say that it is scheduled and how ([`IS_SCHEDULED`], [`SCHEDULE_PLAN`]).
    pub func: PrimFunc,
    /// The plans that were carried out, in program order of their blocks.
    pub plans: Vec<Plan>,
    /// Plans that a primitive refused, each with the reason; a later rule took the block.
    pub refused: Vec<(Plan, Diag)>,
}

/// Schedules a function by the target's rules: cheap injective producers are inlined, then each block in program order
/// goes to the first rule that plans for it and succeeds. Functions that say so (`tir.is_scheduled`) stay as they
/// are, and so do those without blocks.
pub fn apply_default_schedule(func: PrimFunc, target: &Target) -> Scheduled {
    apply_rules(func, target, rules_of(target))
}

/// Schedules a function by the last rule of the target alone: blocks keep their loops and need no buffers of their own.
pub fn apply_last_rule(func: PrimFunc, target: &Target) -> Scheduled {
    apply_rules(func, target, rules_of(target).last().map_or(&[], std::slice::from_ref))
}

fn apply_rules(func: PrimFunc, target: &Target, rules: &[&dyn Rule]) -> Scheduled {
    let done = func.attrs.get(IS_SCHEDULED).and_then(AttrValue::as_bool).unwrap_or(false);
    if done || func.root().is_none() {
        return Scheduled { func, plans: Vec::new(), refused: Vec::new() };
    }
    let mut sch = Schedule::new(func);
    inline::inline_injective(&mut sch);
    let mut plans: Vec<Plan> = Vec::new();
    let mut refused = Vec::new();
    for block in sch.blocks() {
        let moved = plans.iter().any(|p| p.epilogue.as_ref() == Some(&block));
        if moved {
            continue;
        }
        for rule in rules {
            let Some(plan) = rule.plan(&sch, &block, target) else { continue };
            let mut attempt = sch.clone();
            match rule.apply(&mut attempt, &plan) {
                Ok(()) => {
                    sch = attempt;
                    plans.push(plan);
                    break;
                }
                Err(why) => refused.push((plan, why)),
            }
        }
    }
    let mut func = sch.into_func();
    func.attrs.insert(IS_SCHEDULED.into(), AttrValue::Bool(true));
    let said = plans.iter().map(ToString::to_string);
    let unsaid = refused.iter().map(|(plan, why)| format!("not {plan}: {why}"));
    let text: Vec<String> = said.chain(unsaid).collect();
    func.attrs.insert(SCHEDULE_PLAN.into(), AttrValue::Str(text.join("; ").into()));
    Scheduled { func, plans, refused }
}

#[cfg(test)]
mod tests;
