//! The subcommand `acme`.

use clap::{ArgMatches, Command};

use super::settings;

/// What is asked of the certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AcmeAction {
    /// Print what the folder tells.
    Status,
    /// Obtain a certificate now.
    Renew,
    /// Print the records of dns-persist-01.
    Dns,
}

/// Returns the subcommand with its flags.
pub(super) fn command() -> Command {
    let of = |name: &'static str, about: &'static str| {
        let usage = format!("gustnado acme {name} [OPTIONS]");
        Command::new(name).about(about).args(settings()).override_usage(usage)
    };
    Command::new("acme")
        .about("Look after the certificate that --acme obtains")
        .subcommand_required(true)
        .subcommand(of("status", "Print the certificate, the next attempt and the last failure"))
        .subcommand(of("renew", "Obtain a certificate now; a running server answers challenges"))
        .subcommand(of("dns", "Print the DNS records of the challenge dns-persist-01"))
}

/// Returns what is asked, with the flags of it; `None` for another subcommand.
pub(super) fn read<'a>(name: &str, flags: &'a ArgMatches) -> Option<(AcmeAction, &'a ArgMatches)> {
    let (action, flags) = flags.subcommand().filter(|_| name == "acme")?;
    let action = match action {
        "status" => AcmeAction::Status,
        "renew" => AcmeAction::Renew,
        _ => AcmeAction::Dns,
    };
    Some((action, flags))
}
