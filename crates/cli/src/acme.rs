//! `gustnado acme`: what is known of the certificate from an authority, a renewal now, and the
//! records of dns-persist-01. Without the cargo feature `acme`, the module `no_acme` replaces this
//! one.

use crate::arguments::{AcmeAction, ServeOptions};
use crate::exit;
use crate::output::{Console, page};

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
            page(&(records.join("\n") + "\n"));
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
