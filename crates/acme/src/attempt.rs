//! One attempt: to obtain a certificate, or to ask for advice about its renewal.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gustnado_tasks::block_on;
use instant_acme::{Account, Error};

use crate::account;
use crate::authority::Authority;
use crate::certificate::HeldCertificate;
use crate::error::AcmeError;
use crate::order::obtain;
use crate::schedule::AcmeState;
use crate::settings::AcmeSettings;
use crate::store::CertificateStore;

/// Obtains a certificate, and writes it into the folder, which is locked.
pub(crate) fn attempt(
    settings: &AcmeSettings,
    store: &CertificateStore,
    state: &mut AcmeState,
    authority: &Authority,
) -> Result<HeldCertificate, AcmeError> {
    let choice = settings.challenge_of(state.failures);
    let held = HeldCertificate::read(&store.certificate());
    let replaces = held.filter(|held| !held.is_placeholder).and_then(|held| held.id);
    let asked = async {
        let account = account::open(settings, store, state, authority).await?;
        obtain(&account, settings, store, choice, replaces).await
    };
    let pem = run(asked)?;
    store.write_bytes("certificate.pem", pem.as_bytes())?;
    HeldCertificate::parse(&pem).ok_or_else(|| AcmeError::Unusable("nothing".to_owned()))
}

/// Asks when a certificate is to be renewed: the first and the last second of a window, if the
/// authority gives one, and after how many seconds it can be asked again.
pub(crate) fn advice(
    settings: &AcmeSettings,
    store: &CertificateStore,
    state: &mut AcmeState,
    held: &HeldCertificate,
    authority: &Authority,
) -> Result<(Option<(i64, i64)>, i64), AcmeError> {
    let Some(id) = &held.id else { return Ok((None, i64::MAX)) };
    let asked = async {
        let account: Account = account::open(settings, store, state, authority).await?;
        match account.renewal_info(id).await {
            Ok((info, wait)) => {
                let window = info.suggested_window;
                let window = (window.start.unix_timestamp(), window.end.unix_timestamp());
                Ok((Some(window), seconds(wait)))
            }
            Err(Error::Unsupported(_)) => Ok((None, i64::MAX)),
            Err(error) => Err(error.into()),
        }
    };
    run(asked)
}

/// Runs requests on this thread.
pub(crate) fn run<T>(work: impl Future<Output = Result<T, AcmeError>>) -> Result<T, AcmeError> {
    let done = block_on(work).map_err(io::Error::other);
    done.map_err(|error| AcmeError::Unreachable(error.to_string()))?
}

pub(crate) fn now_s() -> i64 {
    seconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
