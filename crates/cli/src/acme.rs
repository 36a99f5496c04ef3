//! `gustnado acme`: what is known of the certificate from an authority, a renewal now, and the
//! records of dns-persist-01. Without the cargo feature `acme`, the module `no_acme` replaces this
//! one.

use clap::{ArgMatches, Command};

use crate::arguments::{ServeOptions, settings};
use crate::exit;
use crate::output::{Console, page};

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
pub(crate) fn command() -> Option<Command> {
    let of = |name: &'static str, about: &'static str| {
        let usage = format!("gustnado acme {name} [OPTIONS]");
        Command::new(name).about(about).args(settings()).override_usage(usage)
    };
    let command = Command::new("acme")
        .about("Look after the certificate that --acme obtains")
        .subcommand_required(true)
        .subcommand(of("status", "Print the certificate, the next attempt and the last failure"))
        .subcommand(of("renew", "Obtain a certificate now; a running server answers challenges"))
        .subcommand(of("dns", "Print the DNS records of the challenge dns-persist-01"));
    Some(command)
}

/// Returns what is asked, with the flags of it; `None` for another subcommand.
pub(crate) fn read<'a>(name: &str, flags: &'a ArgMatches) -> Option<(AcmeAction, &'a ArgMatches)> {
    let (action, flags) = flags.subcommand().filter(|_| name == "acme")?;
    let action = match action {
        "status" => AcmeAction::Status,
        "renew" => AcmeAction::Renew,
        _ => AcmeAction::Dns,
    };
    Some((action, flags))
}

/// Does what is asked. Returns the exit code: 0 if there is a certificate of an authority.
pub(crate) fn run(action: AcmeAction, options: &ServeOptions) -> u8 {
    let server = options.server();
    let done = match action {
        AcmeAction::Status => server.acme_status().map(|status| {
            page(&status.to_string());
            if status.is_good() { exit::CLEAN } else { exit::FAILED }
        }),
        AcmeAction::Renew => server.acme_renew().map(|line| {
            page(&format!("{line}\n"));
            exit::CLEAN
        }),
        AcmeAction::Dns => server.acme_dns().map(|records| {
            records.iter().for_each(|record| _ = page(&format!("{record}\n")));
            exit::CLEAN
        }),
    };
    done.unwrap_or_else(|error| {
        Console::new(false).error(&options.line(&error));
        exit::FAILED
    })
}

/// Prints what is known of the certificate, where one is wanted.
pub(crate) fn print_status(options: &ServeOptions) {
    if options.settings.config.acme.is_empty() {
        return;
    }
    if let Ok(status) = options.server().acme_status() {
        page(&format!("\nCertificate\n{status}"));
    }
}
