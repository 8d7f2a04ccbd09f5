//! The cases that are known not to pass: a text file, a line each, name and reason with a tab between. Lines that
//! begin with `#` are comments.

use super::report::CaseResult;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Cases that are known not to pass, with their reasons.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expected(BTreeMap<String, String>);

impl Expected {
    /// Reads the text of a file. Errors: a line without a reason, a case listed twice.
    pub fn parse(text: &str) -> Result<Expected, String> {
        let mut cases = BTreeMap::new();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, reason) = line
                .split_once('\t')
                .filter(|(name, reason)| !name.is_empty() && !reason.trim().is_empty())
                .ok_or_else(|| format!("line {}: a case, a tab and a reason are expected", i + 1))?;
            if cases.insert(name.to_owned(), reason.to_owned()).is_some() {
                return Err(format!("line {}: {name} is listed twice", i + 1));
            }
        }
        Ok(Expected(cases))
    }

    /// What differs from the expectation, a line each: cases that fail and are not listed, and cases that are listed
    /// and pass or do not exist. With a filter, cases that did not run are not missed.
    pub fn differences(&self, results: &[CaseResult], filtered: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for r in results {
            match (&r.outcome.failure, self.0.contains_key(&r.name)) {
                (Some((stage, reason)), false) => {
                    lines.push(format!("{} should pass: {}: {reason}", r.name, stage.name()));
                }
                (None, true) => lines.push(format!("{} passes and should not be listed any more", r.name)),
                _ => {}
            }
        }
        let ran = |name: &str| results.iter().any(|r| r.name == name);
        if !filtered {
            lines.extend(self.0.keys().filter(|n| !ran(n)).map(|n| format!("{n} is listed and there is no such case")));
        }
        lines
    }

    /// The text of a file for these results: reasons that are written already stay, new ones are the tool's.
    pub fn bless(&self, results: &[CaseResult], heading: &str) -> String {
        let mut text = String::from(heading);
        for r in results {
            if let Some((stage, reason)) = &r.outcome.failure {
                let new = || format!("{}: {reason}", stage.name());
                let reason = self.0.get(&r.name).cloned().unwrap_or_else(new);
                let _ = writeln!(text, "{}\t{reason}", r.name);
            }
        }
        text
    }
}

/// The comments that a text begins with.
pub fn heading(text: &str) -> String {
    text.lines().take_while(|l| l.starts_with('#')).map(|l| format!("{l}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Outcome, Stage};
    use super::*;

    fn result(name: &str, outcome: Outcome) -> CaseResult {
        CaseResult { name: name.into(), outcome, seconds: 0.0 }
    }

    #[test]
    fn lists() {
        let text = "# why\na\tno images\nb\tlater\n";
        let list = Expected::parse(text).unwrap();
        let failed = || Outcome::failed(Stage::Import, "no");
        let results = [result("a", failed()), result("b", Outcome::passed(0)), result("c", failed())];
        assert_eq!(
            list.differences(&results, false),
            ["b passes and should not be listed any more", "c should pass: import: no"]
        );
        assert_eq!(list.differences(&results[2..], true).len(), 1);
        assert_eq!(list.differences(&results[2..], false).len(), 3);
        assert_eq!(list.bless(&results, &heading(text)), "# why\na\tno images\nc\timport: no\n");
        assert!(Expected::parse("a").unwrap_err().contains("line 1"));
        assert!(Expected::parse("a\tx\n\na\ty").unwrap_err().contains("line 3: a is listed twice"));
    }
}
