//! What a suite says at its end.

use super::outcome::{Outcome, Stage};
use std::fmt::Write;

/// A case and what became of it.
pub struct CaseResult {
    pub name: String,
    pub outcome: Outcome,
    pub seconds: f64,
}

/// All cases, by name.
pub struct Report {
    pub results: Vec<CaseResult>,
    pub seconds: f64,
}

impl Report {
    pub fn failed(&self) -> usize {
        self.results.iter().filter(|r| r.outcome.failure.is_some()).count()
    }

    /// Failures by stage, worst first; how many of each; last `N passed, M failed`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut counts = String::new();
        for stage in Stage::ALL {
            let mut count = 0;
            for r in &self.results {
                if let Some((s, reason)) = &r.outcome.failure
                    && *s == stage
                {
                    count += 1;
                    let _ = writeln!(text, "{:<8} {}: {reason}", stage.name(), r.name);
                }
            }
            if count > 0 {
                let _ = write!(counts, "{} {count}  ", stage.name());
            }
        }
        if !counts.is_empty() {
            let _ = writeln!(text, "{}", counts.trim_end());
        }
        let failed = self.failed();
        let bound = self.results.iter().filter(|r| r.outcome.bound > 0).count();
        if bound > 0 {
            let _ = writeln!(text, "{bound} of the passed were compiled for values of some of their inputs");
        }
        let _ = writeln!(text, "{:.1} s", self.seconds);
        let _ = writeln!(text, "{} passed, {failed} failed", self.results.len() - failed);
        text
    }

    /// The same as a JSON object.
    pub fn json(&self) -> String {
        let failed = self.failed();
        let mut text = format!(
            "{{\"passed\": {}, \"failed\": {failed}, \"seconds\": {:.1}, \"cases\": [",
            self.results.len() - failed,
            self.seconds
        );
        for (i, r) in self.results.iter().enumerate() {
            let (status, stage, reason) = match &r.outcome.failure {
                None => ("passed", "", ""),
                Some((stage, reason)) => ("failed", stage.name(), reason.as_str()),
            };
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(
                text,
                "{comma}\n{{\"case\": {}, \"status\": \"{status}\", \"stage\": \"{stage}\", \"reason\": {}, \
                 \"bound_inputs\": {}, \"seconds\": {:.3}}}",
                quoted(&r.name),
                quoted(reason),
                r.outcome.bound,
                r.seconds
            );
        }
        text.push_str("\n]}\n");
        text
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let case = |name: &str, outcome| CaseResult { name: name.into(), outcome, seconds: 0.5 };
        let results = vec![
            case("a", Outcome::failed(Stage::Import, "say \"no\"\n")),
            case("b", Outcome::failed(Stage::Mismatch, "off")),
            case("c", Outcome::passed(1)),
        ];
        let report = Report { results, seconds: 1.0 };
        let text = report.text();
        assert!(text.starts_with("mismatch b: off\nimport   a: say"), "{text}");
        assert!(text.ends_with("mismatch 1  import 1\n1 of the passed were compiled for values of some of their inputs\n1.0 s\n1 passed, 2 failed\n"), "{text}");
        assert!(report.json().contains("\"reason\": \"say \\\"no\\\"\\u000a\""), "{}", report.json());
    }
}
