//! One order of a certificate: proofs for all names, then the certificate.

use std::time::Duration;

use gustnado_tasks::sleep;
use gustnado_tls::AcmeChallenges;
use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeHandle,
    ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus,
};

use crate::certificate;
use crate::error::{AcmeError, words};
use crate::settings::{AcmeSettings, ChallengeChoice};
use crate::store::CertificateStore;

/// How long an authority may take to check the proofs, and to issue.
const CHECK_TIME: Duration = Duration::from_mins(3);
/// How often it is asked how far it is: the first wait, and the longest one.
const WAITS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Servers that share the folder look into it each second.
const OTHERS_TIME: Duration = Duration::from_millis(1_500);

/// Obtains a certificate. Returns it with its key and its issuers, in PEM.
pub(crate) async fn obtain(
    account: &Account,
    settings: &AcmeSettings,
    store: &CertificateStore,
    choice: ChallengeChoice,
    replaces: Option<CertificateIdentifier<'static>>,
) -> Result<String, AcmeError> {
    let names: Vec<Identifier> = settings.names.iter().map(|name| identifier(name)).collect();
    let mut order = new_order(account, &names, settings, replaces).await?;
    let mut proofs = Proofs { store, files: Vec::new() };
    prove(&mut order, choice, &mut proofs).await?;
    let status = await_status(&mut order, |status| status == OrderStatus::Pending).await?;
    drop(proofs);
    if status == OrderStatus::Invalid {
        return Err(refused(&mut order).await);
    }
    let (key, request) = certificate::request(&settings.names)?;
    if status == OrderStatus::Ready {
        order.finalize_csr(&request).await?;
    }
    let is_underway = |status| matches!(status, OrderStatus::Processing | OrderStatus::Ready);
    if await_status(&mut order, is_underway).await? == OrderStatus::Invalid {
        return Err(refused(&mut order).await);
    }
    let chain = order.certificate().await?;
    let chain = chain.ok_or_else(|| AcmeError::Unusable("nothing".to_owned()))?;
    certificate::joined(&key, &chain, &settings.names)
}

fn identifier(name: &str) -> Identifier {
    name.parse().map_or_else(|_| Identifier::Dns(name.to_owned()), Identifier::Ip)
}

async fn new_order(
    account: &Account,
    names: &[Identifier],
    settings: &AcmeSettings,
    replaces: Option<CertificateIdentifier<'static>>,
) -> Result<Order, AcmeError> {
    let profile = account.profiles().any(|profile| profile.name == settings.profile);
    let wanted = || {
        let order = NewOrder::new(names);
        if profile { order.profile(&settings.profile) } else { order }
    };
    if let Some(replaces) = replaces {
        // One that was replaced before, or is of another authority, is no reason to have none.
        match account.new_order(&wanted().replaces(replaces)).await {
            Err(Error::Api(problem)) if !is_limit(&problem) => {}
            Err(Error::Unsupported(_) | Error::Other(_) | Error::Str(_)) => {}
            order => return Ok(order?),
        }
    }
    Ok(account.new_order(&wanted()).await?)
}

fn is_limit(problem: &instant_acme::Problem) -> bool {
    problem.r#type.as_deref().is_some_and(|kind| {
        kind.ends_with(":rateLimited") || kind.ends_with(":accountDoesNotExist")
    })
}

/// Answers the challenge of each name.
async fn prove(
    order: &mut Order,
    choice: ChallengeChoice,
    proofs: &mut Proofs<'_>,
) -> Result<(), AcmeError> {
    let mut all = order.authorizations();
    while let Some(authorization) = all.next().await {
        let mut authorization = authorization?;
        if is_pending(&authorization)? {
            let (_, challenge) = challenge_of(&mut authorization, choice)?;
            proofs.add(choice, &challenge)?;
        }
    }
    if !proofs.files.is_empty() {
        sleep(OTHERS_TIME).await;
    }
    let mut all = order.authorizations();
    while let Some(authorization) = all.next().await {
        let mut authorization = authorization?;
        if is_pending(&authorization)? {
            let (name, mut challenge) = challenge_of(&mut authorization, choice)?;
            challenge.set_ready().await.map_err(|error| named(&name, error))?;
        }
    }
    Ok(())
}

/// Returns whether a proof is wanted. A name that was proved lately needs none.
fn is_pending(authorization: &AuthorizationHandle<'_>) -> Result<bool, AcmeError> {
    match authorization.status {
        AuthorizationStatus::Valid => Ok(false),
        AuthorizationStatus::Pending => Ok(true),
        status => {
            let name = authorization.identifier();
            Err(AcmeError::Refused(format!("{name}: the authorization is {status:?}")))
        }
    }
}

fn challenge_of<'a>(
    authorization: &'a mut AuthorizationHandle<'a>,
    choice: ChallengeChoice,
) -> Result<(String, ChallengeHandle<'a>), AcmeError> {
    let kind = match choice {
        ChallengeChoice::Http01 | ChallengeChoice::Auto { .. } => ChallengeType::Http01,
        ChallengeChoice::TlsAlpn01 => ChallengeType::TlsAlpn01,
        ChallengeChoice::DnsPersist01 => ChallengeType::Unknown(choice.as_str().to_owned()),
    };
    let name = authorization.identifier().to_string();
    let offered: Vec<String> =
        authorization.challenges.iter().map(|one| name_of(&one.r#type)).collect();
    let (challenge, offered) = (choice.as_str(), offered.join(", "));
    let found = authorization.challenge(kind);
    let found =
        found.ok_or_else(|| AcmeError::NoChallenge { challenge, name: name.clone(), offered })?;
    Ok((name, found))
}

fn name_of(kind: &ChallengeType) -> String {
    match kind {
        ChallengeType::Http01 => "http-01".to_owned(),
        ChallengeType::Dns01 => "dns-01".to_owned(),
        ChallengeType::TlsAlpn01 => "tls-alpn-01".to_owned(),
        ChallengeType::Unknown(name) => name.clone(),
        other => format!("{other:?}"),
    }
}

fn named(name: &str, error: Error) -> AcmeError {
    match error {
        Error::Api(problem) => AcmeError::Refused(format!("{name}: {}", words(&problem))),
        error => error.into(),
    }
}

/// Waits until the order is something else. Returns what.
async fn await_status(
    order: &mut Order,
    goes_on: impl Fn(OrderStatus) -> bool,
) -> Result<OrderStatus, AcmeError> {
    let (mut wait, longest) = WAITS;
    let mut waited = Duration::ZERO;
    loop {
        let status = order.refresh().await?.status;
        if !goes_on(status) {
            return Ok(status);
        }
        if waited >= CHECK_TIME {
            let (seconds, status) = (CHECK_TIME.as_secs(), format!("{status:?}").to_lowercase());
            return Err(AcmeError::TooSlow { seconds, status });
        }
        sleep(wait).await;
        waited += wait;
        wait = (wait * 2).min(longest);
    }
}

/// Returns what the authority says about an order that it refuses: about each of its names.
async fn refused(order: &mut Order) -> AcmeError {
    let of_order = order.state().error.as_ref().map(words);
    let mut reasons = Vec::new();
    let mut all = order.authorizations();
    while let Some(Ok(mut authorization)) = all.next().await {
        if authorization.refresh().await.is_err() {
            continue;
        }
        let name = authorization.identifier().to_string();
        let problems = authorization.challenges.iter().filter_map(|one| one.error.as_ref());
        reasons.extend(problems.map(|problem| format!("{name}: {}", words(problem))));
    }
    if reasons.is_empty() {
        reasons.push(of_order.unwrap_or_else(|| "the order is invalid".to_owned()));
    }
    AcmeError::Refused(reasons.join("; "))
}

/// Answers to challenges, which are removed in the end.
struct Proofs<'a> {
    store: &'a CertificateStore,
    files: Vec<String>,
}

impl Proofs<'_> {
    fn add(
        &mut self,
        choice: ChallengeChoice,
        challenge: &ChallengeHandle<'_>,
    ) -> Result<(), AcmeError> {
        let proof = challenge.key_authorization();
        let (file, bytes) = match choice {
            ChallengeChoice::TlsAlpn01 => {
                let name = challenge.identifier().to_string();
                let asked = certificate::asked_name(&name).to_ascii_lowercase();
                let pem = certificate::proof(&name, proof.digest().as_ref())?;
                (AcmeChallenges::name_file(&asked), pem.into_bytes())
            }
            ChallengeChoice::DnsPersist01 => return Ok(()),
            ChallengeChoice::Http01 | ChallengeChoice::Auto { .. } => {
                let file = AcmeChallenges::token_file(&challenge.token);
                (file, proof.as_str().as_bytes().to_vec())
            }
        };
        // What an authority sends is part of a file's name.
        if file.contains('/') {
            return Err(AcmeError::Unusable(format!("the token {:?}", challenge.token)));
        }
        let path = format!("challenges/{file}");
        self.store.write_bytes(&path, &bytes)?;
        self.files.push(path);
        Ok(())
    }
}

impl Drop for Proofs<'_> {
    fn drop(&mut self) {
        for file in &self.files {
            self.store.remove(file);
        }
    }
}
