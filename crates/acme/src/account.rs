//! The account with an authority.

use std::fs;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, NewAccount, Problem};

use crate::authority::Authority;
use crate::error::AcmeError;
use crate::schedule::AcmeState;
use crate::settings::{AcmeSettings, ExternalAccount};
use crate::store::CertificateStore;

/// Returns the account of the folder; the first time it is made.
///
/// By asking for certificates, the server's owner agrees to the authority's terms.
pub(crate) async fn open(
    settings: &AcmeSettings,
    store: &CertificateStore,
    state: &mut AcmeState,
    authority: &Authority,
) -> Result<Account, AcmeError> {
    let file = file_of(&settings.directory);
    let builder = || Account::builder_with_http(Box::new(authority.clone()));
    if let Some(credentials) = store.read::<AccountCredentials>(&file) {
        let account = builder().from_credentials(credentials).await?;
        if state.email == settings.email {
            return Ok(account);
        }
        match account.update_contacts(&contacts(contact(settings).as_deref())).await {
            Err(Error::Api(problem)) if is_unknown(&problem) => {}
            updated => {
                updated?;
                state.email.clone_from(&settings.email);
                return Ok(account);
            }
        }
    }
    let contact = contact(settings);
    let contact = contacts(contact.as_deref());
    let wanted = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let external = settings.external.as_ref().map(external).transpose()?;
    let made = builder().create(&wanted, settings.directory.clone(), external.as_ref());
    let (account, credentials) = made.await?;
    store.write(&file, &credentials)?;
    state.email.clone_from(&settings.email);
    Ok(account)
}

/// Returns whether the authority does not know the account: a test authority forgets them.
pub(crate) fn is_unknown(problem: &Problem) -> bool {
    problem.r#type.as_deref().is_some_and(|kind| kind.ends_with(":accountDoesNotExist"))
}

/// Forgets the account, so that the next attempt makes one.
pub(crate) fn forget(settings: &AcmeSettings, store: &CertificateStore) {
    store.remove(&file_of(&settings.directory));
}

/// Each authority has its own.
fn file_of(directory: &str) -> String {
    let host = directory.split("://").last().unwrap_or(directory);
    let host = host.split('/').next().unwrap_or(host).to_ascii_lowercase();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    format!("account-{}.json", host.chars().map(plain).collect::<String>())
}

fn contact(settings: &AcmeSettings) -> Option<String> {
    settings.email.as_ref().map(|email| format!("mailto:{email}"))
}

fn contacts(contact: Option<&str>) -> Vec<&str> {
    contact.into_iter().collect()
}

fn external(account: &ExternalAccount) -> Result<ExternalAccountKey, AcmeError> {
    let file = account.key.display().to_string();
    let failed = |found: String| AcmeError::ExternalKey { file: file.clone(), found };
    let text = fs::read_to_string(&account.key).map_err(|error| failed(error.to_string()))?;
    let key = BASE64_URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('='));
    let key = key.map_err(|error| failed(error.to_string()))?;
    Ok(ExternalAccountKey::new(account.id.clone(), &key))
}

#[cfg(test)]
mod tests {
    use super::file_of;

    #[test]
    fn each_authority_has_an_account_of_its_own() {
        assert_eq!(file_of("https://acme.test/directory"), "account-acme.test.json");
        assert_eq!(file_of("https://LOCALHOST:14000/dir"), "account-localhost-14000.json");
        assert_eq!(file_of("https://../x"), "account-...json");
    }
}
