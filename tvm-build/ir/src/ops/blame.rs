//! Which operand of a call an error is about. Messages of ops name operands in backticks, the one at fault first; of two
//! that do not fit each other ("`a` … and `b`") the second is at fault.

use crate::relax::OpDef;

/// The argument or attribute that a message of an op is about; `None` when it is about the call.
pub(crate) fn operand_at_fault(def: &OpDef, message: &str) -> Option<&'static str> {
    let text = message.split_once(": ").map_or(message, |(_, rest)| rest);
    let mut quoted: Vec<&'static str> = Vec::new();
    for word in text.split('`').skip(1).step_by(2) {
        if let Some(name) = operand(def, word).filter(|n| !quoted.contains(n)) {
            quoted.push(name);
        }
    }
    match quoted.as_slice() {
        [_, second] if text.contains(&format!(" and `{second}`")) => Some(second),
        [first, ..] => Some(first),
        // "axis 2 is out of range"
        [] => match text.split(' ').next().unwrap_or_default() {
            "axis" => operand(def, "axis").or_else(|| operand(def, "axes")),
            word => operand(def, word),
        },
    }
}

fn operand(def: &OpDef, word: &str) -> Option<&'static str> {
    let mut names = def.args.iter().map(|a| a.name).chain(def.attrs.iter().map(|a| a.name));
    names.find(|n| *n == word)
}

/// A message with the operands' names as the caller wrote them: in backticks, and in calls that it suggests.
pub(crate) fn with_written_names(text: &str, written: &[(&str, String)]) -> String {
    let find = |word: &str| written.iter().find(|(name, _)| *name == word).map(|(_, own)| own.as_str());
    let mut out = String::with_capacity(text.len());
    // Depth of brackets in a call of an op; 0 outside of one.
    let (mut depth, mut ticks) = (0u32, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word: &str = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
        let after = &rest[word.len()..];
        let alone = !out.ends_with(['.', '"']) && !after.starts_with(['.', '=', '"']);
        let in_ticks = ticks && out.ends_with('`') && after.starts_with('`');
        if !word.is_empty() {
            match find(word).filter(|_| in_ticks || (depth > 0 && alone)) {
                Some(own) => out.push_str(own),
                None => out.push_str(word),
            }
            let op = after.starts_with('(') && out.contains("R.");
            if op && depth == 0 {
                let path = out.rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').next();
                depth = u32::from(path.is_some_and(|p| p.starts_with("R.")));
                if depth > 0 {
                    out.push('(');
                    rest = &after[1..];
                    continue;
                }
            }
            rest = after;
            continue;
        }
        match c {
            '`' => ticks = !ticks,
            '(' | '[' if depth > 0 => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::lookup;

    #[test]
    fn messages_name_the_operand_at_fault() {
        for (op, message, want) in [
            ("matmul", "R.matmul: `x1` (2,) and `x2` (3,) do not fit", Some("x2")),
            ("where", "R.where: `condition` does not broadcast with `x1` and `x2`: 2 against 3", Some("condition")),
            ("nn.softmax", "R.nn.softmax: axis 2 is out of range for rank 2", Some("axis")),
            ("nn.softmax", "R.nn.softmax: attribute `axis` must be an integer, not \"a\"", Some("axis")),
            ("add", "R.add takes 2 argument(s), 3 given", None),
        ] {
            let def = lookup(op).unwrap().def();
            assert_eq!(operand_at_fault(def, message), want, "{message}");
        }
    }

    #[test]
    fn names_are_those_of_the_caller() {
        let written = [("x1", "a"), ("x2", "b"), ("data", "d")].map(|(n, own)| (n, own.to_string()));
        for (text, want) in [
            ("R.add: `x1` (2,) and `x2` (3,) do not broadcast", "R.add: `a` (2,) and `b` (3,) do not broadcast"),
            ("transpose it: R.matmul(x1, R.permute_dims(x2))", "transpose it: R.matmul(a, R.permute_dims(b))"),
            ("the data type (x1) of `data`", "the data type (x1) of `d`"),
            ("R.take(data, x1=x1), x1", "R.take(d, x1=a), x1"),
            ("R.astype(x2, \"x1\")", "R.astype(b, \"x1\")"),
        ] {
            assert_eq!(with_written_names(text, &written), want);
        }
    }
}
