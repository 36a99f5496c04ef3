//! Why there is no certificate.

use instant_acme::{Error, Problem};

use crate::store::CertificateStoreError;

/// Why an attempt has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcmeError {
    /// The authority refuses, in its own words.
    #[error("the authority says: {0}")]
    Refused(String),
    /// The authority cannot be reached, or answers what nobody expects.
    #[error("the authority cannot be asked: {0}")]
    Unreachable(String),
    /// The authority does not offer the challenge for a name.
    #[error("the authority offers no {challenge} for {name}, only {offered}")]
    NoChallenge {
        /// The challenge that was to be answered.
        challenge: &'static str,
        /// The name.
        name: String,
        /// Those that are offered.
        offered: String,
    },
    /// The order was not done in time.
    #[error("the authority was not done within {seconds} s; the order is {status}")]
    TooSlow {
        /// The time that it had.
        seconds: u64,
        /// How far it had come.
        status: String,
    },
    /// The folder cannot be used.
    #[error(transparent)]
    Store(#[from] CertificateStoreError),
    /// The key of the account elsewhere is of no use.
    #[error("{file}: expected a key in base64 for URLs, found {found}")]
    ExternalKey {
        /// The file.
        file: String,
        /// What is wrong with it.
        found: String,
    },
    /// A certificate or a request for one cannot be made.
    #[error("no certificate can be requested for these names: {0}")]
    Request(#[from] rcgen::Error),
    /// What the authority has issued cannot be used.
    #[error("the authority has issued what cannot be used: {0}")]
    Unusable(String),
    /// Another attempt is under way, here or in another process.
    #[error("another attempt is under way; try again when it is over")]
    UnderWay,
}

impl AcmeError {
    /// Returns whether the authority has refused a nonce of its own, several times in a row.
    pub(crate) fn is_of_nonce(&self) -> bool {
        self.ends_with("(badNonce)")
    }

    /// Returns whether the authority does not know the account.
    pub(crate) fn is_of_account(&self) -> bool {
        self.ends_with("(accountDoesNotExist)")
    }

    fn ends_with(&self, kind: &str) -> bool {
        matches!(self, Self::Refused(words) if words.ends_with(kind))
    }

    /// Returns whether the authority had a say in it: it then counts the attempt.
    pub(crate) fn is_of_authority(&self) -> bool {
        !matches!(self, Self::Unreachable(_) | Self::Store(_) | Self::UnderWay)
    }
}

impl From<Error> for AcmeError {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) if problem.status.is_some_and(|status| status >= 500) => {
                Self::Unreachable(words(&problem))
            }
            Error::Api(problem) => Self::Refused(words(&problem)),
            error => Self::Unreachable(error.to_string()),
        }
    }
}

/// Returns what an authority says about a problem, on one line.
pub(crate) fn words(problem: &Problem) -> String {
    let mut all = vec![sentence(problem.detail.as_deref(), problem.r#type.as_deref())];
    for part in &problem.subproblems {
        let of = part.identifier.as_ref().map(|name| name.authorized(false).to_string());
        let sentence = sentence(part.detail.as_deref(), part.r#type.as_deref());
        all.push(of.map_or_else(|| sentence.clone(), |of| format!("{of}: {sentence}")));
    }
    // A line of a log stays one line, whatever the authority sends.
    let text = all.join("; ");
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

fn sentence(detail: Option<&str>, kind: Option<&str>) -> String {
    let kind = kind.map(|kind| kind.rsplit(':').next().unwrap_or(kind));
    match (detail, kind) {
        (Some(detail), Some(kind)) => format!("{detail} ({kind})"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => "nothing about it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use instant_acme::Problem;

    use super::words;

    #[test]
    fn a_problem_is_one_line_in_the_authoritys_words() {
        let problem = |text: &str| serde_json::from_str::<Problem>(text).expect("a problem");
        let limited =
            r#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too\nmany"}"#;
        assert_eq!(words(&problem(limited)), "too many (rateLimited)");
        let parts = r#"{"detail": "see below", "subproblems": [{"type": "urn:x:caa",
            "detail": "CAA forbids it", "identifier": {"type": "dns", "value": "a.test"}}]}"#;
        assert_eq!(words(&problem(parts)), "see below; a.test: CAA forbids it (caa)");
        assert_eq!(words(&problem("{}")), "nothing about it");
    }
}
