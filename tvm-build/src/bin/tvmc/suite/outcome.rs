//! What became of a case.

/// Where a case failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The results are wrong.
    Mismatch,
    /// The process died.
    Crash,
    /// It took too long.
    Time,
    /// The generated C does not compile.
    C,
    /// The module does not compile.
    Compile,
    /// The call failed.
    Run,
    /// The model was not read, or has an operator that is not supported.
    Import,
    /// The case itself is incomplete.
    Case,
}

impl Stage {
    /// All, worst first.
    pub const ALL: [Stage; 8] =
        [Stage::Mismatch, Stage::Crash, Stage::Time, Stage::C, Stage::Compile, Stage::Run, Stage::Import, Stage::Case];

    pub fn name(self) -> &'static str {
        match self {
            Stage::Mismatch => "mismatch",
            Stage::Crash => "crash",
            Stage::Time => "time",
            Stage::C => "c",
            Stage::Compile => "compile",
            Stage::Run => "run",
            Stage::Import => "import",
            Stage::Case => "case",
        }
    }
}

/// What became of a case: `None` is a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub failure: Option<(Stage, String)>,
    /// Inputs that were made constants for the case to pass.
    pub bound: usize,
}

impl Outcome {
    pub fn passed(bound: usize) -> Outcome {
        Outcome { failure: None, bound }
    }

    pub fn failed(stage: Stage, reason: impl Into<String>) -> Outcome {
        Outcome { failure: Some((stage, reason.into())), bound: 0 }
    }

    /// Whether the case was refused with a reason: nothing wrong was computed and nothing broke.
    pub fn refused(&self) -> bool {
        matches!(self.failure, Some((Stage::Import | Stage::Compile | Stage::Run | Stage::Case, _)))
    }

    /// As a process hands it to the one that started it.
    pub fn line(&self) -> String {
        match &self.failure {
            None => format!("passed\t{}", self.bound),
            Some((stage, reason)) => {
                let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(1000).collect();
                format!("failed\t{}\t{reason}", stage.name())
            }
        }
    }

    /// What [`Outcome::line`] wrote; `None` for other text.
    pub fn parse(line: &str) -> Option<Outcome> {
        let mut fields = line.splitn(3, '\t');
        match (fields.next(), fields.next(), fields.next()) {
            (Some("passed"), Some(bound), None) => Some(Outcome::passed(bound.parse().ok()?)),
            (Some("failed"), Some(name), Some(reason)) => {
                let stage = Stage::ALL.into_iter().find(|s| s.name() == name)?;
                Some(Outcome::failed(stage, reason))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        for outcome in [Outcome::passed(2), Outcome::failed(Stage::Mismatch, "a\tb"), Outcome::failed(Stage::C, "")] {
            let line = outcome.line();
            assert_eq!(Outcome::parse(&line).unwrap().line(), line);
        }
        assert_eq!(
            Outcome::parse(&Outcome::failed(Stage::Run, "a\nb").line()),
            Some(Outcome::failed(Stage::Run, "a b"))
        );
        for line in ["", "passed", "passed\tx", "failed\tnowhere\tx", "failed\tc"] {
            assert_eq!(Outcome::parse(line), None, "{line}");
        }
    }
}
