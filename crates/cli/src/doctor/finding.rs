//! One finding and its text form.

use crate::output::Paint;

/// Level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingLevel {
    /// The value is good.
    Good,
    /// It works, but a change would help.
    Change,
    /// No server starts before it is changed.
    Stops,
    /// It could not be read.
    Unknown,
}

/// One finding.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) subject: &'static str,
    pub(super) value: String,
    pub(super) verdict: FindingLevel,
    /// The meaning of the value, in half a sentence.
    pub(super) meaning: String,
    /// Commands, each on its own line; none if nothing should change.
    pub(super) change: Vec<String>,
    /// The consequence of no change.
    pub(super) otherwise: String,
}

impl Finding {
    pub(super) fn good(subject: &'static str, value: String, meaning: &str) -> Self {
        Self {
            subject,
            value,
            verdict: FindingLevel::Good,
            meaning: meaning.to_owned(),
            change: Vec::new(),
            otherwise: String::new(),
        }
    }

    pub(super) fn change(subject: &'static str, value: String, meaning: &str) -> Self {
        Self { verdict: FindingLevel::Change, ..Self::good(subject, value, meaning) }
    }

    pub(super) fn stops(subject: &'static str, value: String, meaning: &str) -> Self {
        Self { verdict: FindingLevel::Stops, ..Self::good(subject, value, meaning) }
    }

    pub(super) fn unknown(subject: &'static str, path: &str) -> Self {
        let meaning = format!("{path} could not be read; nothing is known, nothing to change");
        Self { verdict: FindingLevel::Unknown, ..Self::good(subject, "?".to_owned(), &meaning) }
    }

    /// Adds a command.
    pub(super) fn by(mut self, command: impl Into<String>) -> Self {
        self.change.push(command.into());
        self
    }

    /// Adds the consequence of no change.
    pub(super) fn or_else(mut self, otherwise: &str) -> Self {
        otherwise.clone_into(&mut self.otherwise);
        self
    }

    /// Formats the finding; `width` is that of the longest subject.
    pub(super) fn text(&self, width: usize, paint: Paint) -> String {
        let verdict = match self.verdict {
            FindingLevel::Good => paint.green("ok    "),
            FindingLevel::Change => paint.yellow("change"),
            FindingLevel::Stops => paint.red("stops "),
            FindingLevel::Unknown => paint.dim("?     "),
        };
        let value = paint.bold(&self.value);
        let (subject, meaning) = (self.subject, &self.meaning);
        let first = format!("{verdict}  {subject:width$}  {value}: {meaning}\n");
        let names = std::iter::once("to change:").chain(std::iter::repeat(""));
        let changes = names.zip(&self.change).map(|(name, command)| detail(name, command, paint));
        let otherwise = Some(&self.otherwise).filter(|text| !text.is_empty());
        let otherwise = otherwise.map(|text| detail("otherwise:", text, paint));
        std::iter::once(first).chain(changes).chain(otherwise).collect()
    }
}

fn detail(name: &str, text: &str, paint: Paint) -> String {
    format!("        {}  {text}\n", paint.dim(&format!("{name:10}")))
}
