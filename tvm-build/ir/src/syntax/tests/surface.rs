//! The surface tree as TVMScript text: what a user would write who makes the same mistake in text.

use crate::prim::{BinOp, CmpOp};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, FuncDef, Ident, Keyword, Stmt, StmtKind, UnaryOp};

/// The text of statements; `None` where something has no text of its own.
pub(super) fn text(list: &[Stmt], level: usize) -> Option<String> {
    if list.is_empty() {
        return Some(format!("{}pass\n", "    ".repeat(level)));
    }
    list.iter().map(|s| statement(s, level)).collect()
}

fn statement(s: &Stmt, level: usize) -> Option<String> {
    let pad = "    ".repeat(level);
    let block = |body: &[Stmt]| text(body, level + 1);
    Some(match &s.kind {
        StmtKind::Expr(e) => format!("{pad}{}\n", expr(e)?),
        StmtKind::Assign { target, annotation, value } => {
            let annotation = match annotation {
                Some(a) => format!(": {}", expr(a)?),
                None => String::new(),
            };
            let value = match value {
                Some(v) => format!(" = {}", expr(v)?),
                None => String::new(),
            };
            format!("{pad}{}{annotation}{value}\n", bare(target)?)
        }
        StmtKind::For { target, iter, body } => {
            format!("{pad}for {} in {}:\n{}", bare(target)?, expr(iter)?, block(body)?)
        }
        StmtKind::While { cond, body } => format!("{pad}while {}:\n{}", expr(cond)?, block(body)?),
        StmtKind::If { cond, then, otherwise } => {
            let mut out = format!("{pad}if {}:\n{}", expr(cond)?, block(then)?);
            if !otherwise.is_empty() {
                out.push_str(&format!("{pad}else:\n{}", block(otherwise)?));
            }
            out
        }
        StmtKind::With { value, target, body } => {
            let target = match target {
                Some(t) => format!(" as {}", expr(t)?),
                None => String::new(),
            };
            // `R::dataflow({ … })` is a call without arguments.
            format!("{pad}with {}{target}:\n{}", expr(value)?, block(body)?)
        }
        StmtKind::Assert { cond, message } => match message {
            Some(m) => format!("{pad}assert {}, {}\n", expr(cond)?, expr(m)?),
            None => format!("{pad}assert {}\n", expr(cond)?),
        },
        StmtKind::Return(Some(e)) => format!("{pad}return {}\n", bare(e)?),
        StmtKind::Return(None) => format!("{pad}return\n"),
        StmtKind::Pass => format!("{pad}pass\n"),
        StmtKind::Def(d) => definition(d, level)?,
        StmtKind::Class(c) => format!("{pad}@I.ir_module\n{pad}class {}:\n{}", c.ident.name, block(&c.body)?),
    })
}

fn definition(d: &FuncDef, level: usize) -> Option<String> {
    let pad = "    ".repeat(level);
    let mut out = String::new();
    for e in &d.decorators {
        out.push_str(&format!("{pad}@{}\n", expr(e)?));
    }
    let names = |list: &[Ident]| list.iter().map(|i| i.name.to_string()).collect::<Vec<_>>().join(", ");
    let types = if d.type_params.is_empty() { String::new() } else { format!("[{}]", names(&d.type_params)) };
    let params = d.params.iter().map(|p| match &p.annotation {
        Some(a) => Some(format!("{}: {}", p.ident.name, expr(a)?)),
        None => Some(p.ident.name.to_string()),
    });
    let params = params.collect::<Option<Vec<_>>>()?.join(", ");
    let ret = match &d.ret {
        Some(r) => format!(" -> {}", expr(r)?),
        None => String::new(),
    };
    out.push_str(&format!("{pad}def {}{types}({params}){ret}:\n{}", d.ident.name, text(&d.body, level + 1)?));
    Some(out)
}

/// A tuple without brackets, as it stands alone.
fn bare(e: &Expr) -> Option<String> {
    expr(e)
}

fn list(items: &[Expr]) -> Option<String> {
    Some(items.iter().map(expr).collect::<Option<Vec<_>>>()?.join(", "))
}

fn expr(e: &Expr) -> Option<String> {
    Some(match &e.kind {
        ExprKind::Name(n) => n.to_string(),
        ExprKind::Int(v) => v.to_string(),
        ExprKind::Float(v) => format!("{v:?}"),
        ExprKind::Str(s) => format!("{:?}", s.as_str()),
        ExprKind::Bool(b) => if *b { "True" } else { "False" }.to_string(),
        ExprKind::None => "None".to_string(),
        ExprKind::Broken => return None,
        ExprKind::Attr(base, name) => format!("{}.{name}", expr(base)?),
        ExprKind::Call { func, args, keywords } => {
            let mut parts = args.iter().map(expr).collect::<Option<Vec<_>>>()?;
            for Keyword { name, value, .. } in keywords {
                parts.push(format!("{name}={}", expr(value)?));
            }
            format!("{}({})", expr(func)?, parts.join(", "))
        }
        ExprKind::Index(base, items) if items.is_empty() => format!("{}[()]", expr(base)?),
        ExprKind::Index(base, items) => format!("{}[{}]", expr(base)?, list(items)?),
        ExprKind::Slice(a, b, c) => {
            let part = |e: &Option<Box<Expr>>| e.as_ref().map_or(Some(String::new()), |e| expr(e));
            let step = if c.is_some() { format!(":{}", part(c)?) } else { String::new() };
            format!("{}:{}{step}", part(a)?, part(b)?)
        }
        ExprKind::Tuple(items) => match items.as_slice() {
            [one] => format!("({},)", expr(one)?),
            _ => format!("({})", list(items)?),
        },
        ExprKind::List(items) => format!("[{}]", list(items)?),
        ExprKind::Dict(items) => {
            let items = items.iter().map(|(k, v)| Some(format!("{}: {}", expr(k)?, expr(v)?)));
            format!("{{{}}}", items.collect::<Option<Vec<_>>>()?.join(", "))
        }
        ExprKind::Unary(op, a) => {
            let op = match op {
                UnaryOp::Neg => "-",
                UnaryOp::Pos => "+",
                UnaryOp::Not => "not ",
                UnaryOp::Invert => "~",
            };
            format!("({op}{})", expr(a)?)
        }
        ExprKind::Binary(op, a, b) => {
            let op = match op {
                BinaryOp::TrueDiv => "/",
                BinaryOp::Pow => "**",
                BinaryOp::MatMul => "@",
                BinaryOp::And => "and",
                BinaryOp::Or => "or",
                BinaryOp::Prim(op) => match op {
                    BinOp::Add => "+",
                    BinOp::Sub => "-",
                    BinOp::Mul => "*",
                    BinOp::FloorDiv => "//",
                    BinOp::FloorMod => "%",
                    BinOp::BitAnd => "&",
                    BinOp::BitOr => "|",
                    BinOp::BitXor => "^",
                    BinOp::Shl => "<<",
                    BinOp::Shr => ">>",
                    BinOp::Div | BinOp::Mod | BinOp::Min | BinOp::Max => return None,
                },
            };
            format!("({} {op} {})", expr(a)?, expr(b)?)
        }
        ExprKind::Compare(op, a, b) => {
            let op = match op {
                CmpOp::Eq => "==",
                CmpOp::Ne => "!=",
                CmpOp::Lt => "<",
                CmpOp::Le => "<=",
                CmpOp::Gt => ">",
                CmpOp::Ge => ">=",
            };
            format!("({} {op} {})", expr(a)?, expr(b)?)
        }
    })
}
