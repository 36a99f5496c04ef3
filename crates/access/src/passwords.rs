//! Users and their passwords, from a file as `htpasswd` writes it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use foldhash::quality::RandomState;
use gustnado_http::credentials::Credentials;

use crate::AccessError;
use crate::checks::{Checks, JoinedCheck};
use crate::hash::PasswordHash;
use crate::lines;
use crate::verified::Verified;

const SETTING: &str = "basic-auth";
/// The most users of a file.
const USERS_MAX: usize = 100_000;
/// The most costs of hashes that unknown users may have.
const COSTS_MAX: usize = 16;

/// Users with the hashes of their passwords.
pub struct Passwords {
    users: HashMap<Box<[u8]>, PasswordHash, RandomState>,
    /// One of each cost. They stand in for those of unknown users, whose checks have to take as
    /// long as if they were known.
    stand_ins: Vec<PasswordHash>,
    verified: Verified,
    checks: Arc<Checks>,
    /// The value of `WWW-Authenticate` (RFC 7617 §2).
    challenge: String,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Passwords of {} users", self.users.len())
    }
}

impl Passwords {
    /// Reads a file.
    ///
    /// # Errors
    /// [`AccessError`]: a line is not `user:hash`, or its hash is one that is guessed in no time.
    pub fn read(path: &Path, realm: &str) -> Result<Self, AccessError> {
        let text = lines::read(SETTING, path)?;
        let mut users = HashMap::default();
        let mut stand_ins: Vec<PasswordHash> = Vec::new();
        for (line, entry) in lines::entries(&text) {
            let problem = |problem: String| AccessError::Line {
                setting: SETTING,
                path: path.to_owned(),
                line,
                problem,
            };
            let (user, hash) =
                entry.split_once(':').filter(|(user, _)| !user.is_empty()).ok_or_else(|| {
                    problem(
                        "expected user:hash, found another line; write it with `gustnado passwd`"
                            .to_owned(),
                    )
                })?;
            let hash = PasswordHash::parse(hash.trim()).map_err(problem)?;
            let is_known = stand_ins.iter().any(|known| known.cost() == hash.cost());
            if !is_known && stand_ins.len() < COSTS_MAX {
                stand_ins.push(hash.clone());
            }
            if users.insert(user.as_bytes().into(), hash).is_some() {
                return Err(problem(format!("the user {user:?} is there twice; leave one out")));
            }
            if users.len() > USERS_MAX {
                return Err(problem(format!(
                    "expected at most {USERS_MAX} users, found more; leave some out"
                )));
            }
        }
        if users.is_empty() {
            return Err(AccessError::Empty {
                setting: SETTING,
                path: path.to_owned(),
                expected: "at least one user",
                remedy: "add a line with `gustnado passwd`",
            });
        }
        let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        Ok(Self { users, stand_ins, verified: Verified::new()?, checks: Arc::default(), challenge })
    }

    /// Returns the value of `WWW-Authenticate`.
    pub(crate) fn challenge(&self) -> &str {
        &self.challenge
    }

    /// Returns whether credentials were right within the last minute: then they need no check.
    pub fn are_known(&self, credentials: &Credentials, now_ms: u64) -> bool {
        self.verified.has(credentials.whole(), now_ms)
    }

    /// Joins the check of credentials that another request makes, or begins it.
    pub fn join_check(&self, credentials: &Credentials) -> JoinedCheck {
        self.checks.join(self.verified.tag(credentials.whole()))
    }

    /// Returns whether credentials are right. It takes some tenths of a second, for unknown users,
    /// too, and must not run on a worker.
    pub fn verify(&self, credentials: &Credentials, now_ms: u64) -> bool {
        let known = self.users.get(credentials.user());
        let hash = known.unwrap_or_else(|| self.stand_in(credentials.user()));
        let is_right = hash.verify(credentials.password());
        let is_right = is_right && known.is_some();
        if is_right {
            self.verified.add(credentials.whole(), now_ms);
        }
        is_right
    }

    /// Returns the hash that an unknown user's password is compared with: always the same one, and
    /// nobody outside can tell which.
    fn stand_in(&self, user: &[u8]) -> &PasswordHash {
        let tag = self.verified.tag(user);
        &self.stand_ins[usize::from(tag[0]) % self.stand_ins.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use std::fs;
    use std::task::{Context, Poll, Waker};
    use std::time::Instant;

    use crate::CheckOutcome;

    /// Of `password`, by htpasswd -B.
    const HASH: &str = "$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe";

    fn read(text: &str) -> Result<Passwords, AccessError> {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("users");
        fs::write(&path, text).expect("a file");
        Passwords::read(&path, "here")
    }

    fn credentials(user: &str, password: &str) -> Credentials {
        let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        Credentials::parse(value.as_bytes()).expect("well formed")
    }

    #[test]
    fn right_credentials_are_known_for_a_while() {
        let passwords =
            read(&format!("# users\n\nann:{HASH}\nbob:{HASH}  \r\n")).expect("well formed");
        let right = credentials("ann", "password");
        assert!(!passwords.are_known(&right, 0) && passwords.verify(&right, 0));
        assert!(passwords.are_known(&right, 59_999) && !passwords.are_known(&right, 60_000));
        for wrong in [credentials("ann", "Password"), credentials("eve", "password")] {
            assert!(!passwords.verify(&wrong, 0) && !passwords.are_known(&wrong, 0));
        }
        assert_eq!(passwords.challenge(), "Basic realm=\"here\", charset=\"UTF-8\"");
    }

    #[test]
    fn an_unknown_user_costs_what_one_of_the_file_costs() {
        let argon2 = crate::hash_password("bob", "x", crate::HashKind::Argon2).expect("a line");
        let passwords = read(&format!("ann:{HASH}\neve:{HASH}\n{argon2}\n")).expect("well formed");
        let costs: Vec<&str> = passwords.stand_ins.iter().map(PasswordHash::cost).collect();
        assert_eq!(costs, ["$2y$05", "$argon2id$v=19$m=19456,t=2,p=1"]);
        let of_nobody = |number: u32| {
            let user = format!("nobody{number}");
            let cost = passwords.stand_in(user.as_bytes()).cost();
            assert_eq!(cost, passwords.stand_in(user.as_bytes()).cost(), "always the same");
            cost
        };
        let all: std::collections::HashSet<&str> = (0..100).map(of_nobody).collect();
        assert_eq!(all.len(), 2, "as likely either");
    }

    #[test]
    fn requests_with_the_same_credentials_share_a_check() {
        let passwords = read(&format!("ann:{HASH}")).expect("well formed");
        let (right, other) = (credentials("ann", "password"), credentials("ann", "x"));
        let JoinedCheck::Own(ticket) = passwords.join_check(&right) else { panic!("the first") };
        let JoinedCheck::Other(follower) = passwords.join_check(&right) else { panic!("one more") };
        assert!(matches!(passwords.join_check(&other), JoinedCheck::Own(_)), "of its own");
        ticket.end(CheckOutcome::Right);
        assert_eq!(now_or_never(follower), Some(CheckOutcome::Right));
        // A request that goes leaves its check to another.
        let JoinedCheck::Own(ticket) = passwords.join_check(&right) else { panic!("it ended") };
        let JoinedCheck::Other(mut follower) = passwords.join_check(&right) else { panic!("more") };
        assert_eq!(now_or_never(&mut follower), None);
        drop(ticket);
        assert_eq!(now_or_never(follower), Some(CheckOutcome::Dropped));
        assert!(matches!(passwords.join_check(&right), JoinedCheck::Own(_)));
    }

    fn now_or_never<T>(future: impl Future<Output = T> + Unpin) -> Option<T> {
        let mut future = std::pin::pin!(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_unknown_user_costs_a_check_as_well() {
        let passwords =
            read(&format!("ann:{}", HASH.replace("$05$", "$08$"))).expect("well formed");
        let time = |user: &str| {
            let began = Instant::now();
            passwords.verify(&credentials(user, "password"), 0);
            began.elapsed()
        };
        let (known, unknown) = (time("ann"), time("eve"));
        assert!(unknown * 4 > known, "{unknown:?} against {known:?}");
    }

    #[test]
    fn a_file_that_is_wrong_names_its_line() {
        for (text, part) in [
            ("ann\n".to_owned(), "line 1: expected user:hash"),
            (format!(":{HASH}"), "line 1: expected user:hash"),
            (format!("ann:{HASH}\nann:{HASH}\n"), "line 2: the user \"ann\" is there twice"),
            ("# none\n".to_owned(), "add a line with `gustnado passwd`"),
            (
                format!("a:{HASH}\nb:{{SHA}}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"),
                "line 2: expected a hash",
            ),
        ] {
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.starts_with("basic-auth \"") && error.contains(part), "{error}");
        }
        let error = Passwords::read(Path::new("/none/such"), "").expect_err("no file").to_string();
        assert!(error.contains("name a file that can"), "{error}");
    }
}
