//! Layers of settings: flag over environment over file over default, and the memory of which one
//! won.

use super::Config;
use super::error::ConfigError;
use super::file_settings::FileSettings;
use super::nearest::nearest;
use super::origin::Origin;
use super::table::TUNABLES;
use super::text::{is_address, is_host};
use super::tunable::{InvalidValue, Tunable};
use std::ffi::{OsStr, OsString};

/// Variables of other conventions that count here too.
const PLAIN: [&str; 3] = ["PORT", "LISTEN_PID", "LISTEN_FDS"];
/// The most sockets that a service manager may pass.
const SOCKETS_MAX: u32 = 256;

/// One setting in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Its declaration's name.
    pub name: &'static str,
    /// Its value, in the form of a configuration file.
    pub value: String,
    /// The origin of the value.
    pub origin: Origin,
}

/// A [`Config`] that remembers where each value came from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The values.
    pub config: Config,
    /// Lines for the operator about mistakes that do not keep the server from starting.
    pub warnings: Vec<String>,
    origins: Vec<Origin>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config: Config::default(),
            warnings: Vec::new(),
            origins: vec![Origin::Default; TUNABLES.len()],
        }
    }
}

impl Settings {
    /// Lays `flags` (names without dashes) over `environment` over `file` over the defaults.
    ///
    /// What a higher layer overrides is not read at all, so it cannot be wrong either. The plain
    /// variable `PORT`, which many platforms set, is the layer right above the default port.
    ///
    /// # Errors
    /// The first value that its setting does not take, or a flag that is no setting.
    pub fn layered(
        flags: &[(&str, OsString)],
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        file: Option<&FileSettings>,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        let variables = settings.variables(environment);
        if let Some((name, _)) = flags.iter().find(|(name, _)| index_of(name).is_none()) {
            return Err(unknown(name));
        }
        for tunable in TUNABLES {
            let flag = flags.iter().rfind(|(name, _)| *name == tunable.name);
            let variable = |wanted: &str| variables.iter().find(|(name, _)| name == wanted);
            if let Some((_, value)) = flag {
                settings.set(tunable.name, value, Origin::Flag(tunable.flag()))?;
            } else if let Some((name, value)) = variable(&tunable.variable()) {
                settings.set(tunable.name, value, Origin::Environment(name.clone()))?;
            } else if let ("listen", Some(sockets)) = (tunable.name, activated(&variables)) {
                let origin = Origin::Environment("LISTEN_FDS".to_owned());
                settings.set(tunable.name, sockets.as_ref(), origin)?;
            } else if let ("port", Some((name, value))) = (tunable.name, variable("PORT")) {
                settings.set(tunable.name, value, Origin::Environment(name.clone()))?;
            } else if let Some(setting) = file.and_then(|file| file.get(tunable.name)) {
                let (path, line) = (setting.place.file.to_path_buf(), setting.place.line);
                let variables = setting.variables.clone().into();
                let origin = Origin::File { path, line, variables };
                settings.set(tunable.name, &setting.value, origin)?;
            }
        }
        if let Some(file) = file {
            settings.config.routes.cache.clone_from(&file.cache);
        }
        settings.apply_listen();
        Ok(settings)
    }

    /// Gives one setting a value, over whatever it had.
    ///
    /// # Errors
    /// The value is not one that the setting takes, or there is no such setting.
    pub fn set(&mut self, name: &str, value: &OsStr, origin: Origin) -> Result<(), ConfigError> {
        let index = index_of(name).ok_or_else(|| unknown(name))?;
        let tunable = &TUNABLES[index];
        // In a file it was written as `[]` or `"off"`.
        let is_of_file = matches!(origin, Origin::File { .. });
        if tunable.is_guard() && is_empty(value) && !is_of_file {
            let refused = InvalidValue { expected: tunable.takes(), nearest: None };
            return Err(refusal(tunable, refused, value, origin));
        }
        match tunable.set(&mut self.config, value) {
            Ok(()) => {
                self.origins[index] = origin;
                Ok(())
            }
            Err(refused) => Err(refusal(tunable, refused, value, origin)),
        }
    }

    /// Returns the setting of that name, if it takes the value.
    pub(crate) fn check(name: &str, value: &OsStr) -> Result<&'static Tunable, ConfigError> {
        let index = index_of(name).ok_or_else(|| unknown(name))?;
        Self::default().set(name, value, Origin::Flag(name.to_owned()))?;
        Ok(&TUNABLES[index])
    }

    /// Lets `listen` replace `host`, `port` and `uds`, unless a higher layer sets those.
    fn apply_listen(&mut self) {
        if self.config.listen.is_empty() {
            return;
        }
        let own = self.origin("listen").clone();
        let others = ["host", "port", "uds"].into_iter();
        let others = others.filter(|name| self.origin(name).rank() >= own.rank());
        let Some(other) = others.max_by_key(|name| self.origin(name).rank()) else { return };
        let (of_other, own_rank) = (self.origin(other).clone(), own.rank());
        if of_other.rank() > own_rank {
            let (winner, loser) = (of_other.place(), own.place());
            let text = format!("`listen` of {loser} is ignored: {winner} takes precedence");
            self.warnings.push(text);
            self.config.listen = Vec::new();
            if let Some(index) = index_of("listen") {
                self.origins[index] = Origin::Default;
            }
        } else {
            let (winner, loser) = (own.place(), of_other.place());
            self.warnings.push(format!("{loser} is ignored: {winner} takes precedence"));
        }
    }

    /// Returns every setting with its value and where it came from, in the table's order.
    pub fn effective(&self) -> Vec<Effective> {
        let with_origin = TUNABLES.iter().zip(&self.origins);
        with_origin
            .map(|(tunable, origin)| Effective {
                name: tunable.name,
                value: tunable.show(&self.config),
                origin: origin.clone(),
            })
            .collect()
    }

    /// Returns where the value of `name` came from; the default for a name that is no setting.
    pub fn origin(&self, name: &str) -> &Origin {
        index_of(name).map_or(&Origin::Default, |index| &self.origins[index])
    }

    /// Picks the variables that are ours, and warns of those that look as if they should be.
    fn variables(
        &mut self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(String, OsString)> {
        let mut ours = Vec::new();
        for (name, value) in environment {
            let Ok(name) = name.into_string() else {
                continue;
            };
            if name == "GUSTNADO_CONFIG" {
                continue; // names the file, which has been read
            }
            let known =
                PLAIN.contains(&name.as_str()) || TUNABLES.iter().any(|one| one.variable() == name);
            if known && is_service_link(&value) {
                self.warnings.push(format!(
                    "{name} is a Kubernetes service link, not a setting: ignored; set \
                     enableServiceLinks: false, or call the service something else"
                ));
            } else if known {
                ours.push((name, value));
            } else if name.starts_with("GUSTNADO_") && !is_service_link_name(&name) {
                self.warnings.push(stray_variable(&name));
            }
        }
        // The environment has no order of its own, and warnings should not change theirs.
        self.warnings.sort();
        ours
    }
}

/// Returns the sockets that a service manager has opened for this process (systemd's
/// `sd_listen_fds(3)`), as `listen` takes them: the first is descriptor 3.
fn activated(variables: &[(String, OsString)]) -> Option<String> {
    let number = |wanted: &str| {
        let (_, value) = variables.iter().find(|(name, _)| name == wanted)?;
        value.to_str()?.parse::<u32>().ok()
    };
    // They may have been meant for a parent, and not be here.
    let is_ours = number("LISTEN_PID")? == std::process::id();
    let count =
        number("LISTEN_FDS").filter(|count| is_ours && (1..=SOCKETS_MAX).contains(count))?;
    let sockets: Vec<String> = (3..3 + count).map(|number| format!("fd:{number}")).collect();
    Some(sockets.join(","))
}

fn index_of(name: &str) -> Option<usize> {
    TUNABLES.iter().position(|tunable| tunable.name == name)
}

/// Returns whether a list has nothing in it, or a path is none.
fn is_empty(value: &OsStr) -> bool {
    value.to_str().is_some_and(|text| text.split(',').all(|one| one.trim().is_empty()))
}

fn unknown(name: &str) -> ConfigError {
    let nearest = nearest(name, TUNABLES.iter().map(|tunable| tunable.name));
    ConfigError::Unknown { name: name.to_owned(), nearest }
}

fn refusal(tunable: &Tunable, refused: InvalidValue, value: &OsStr, origin: Origin) -> ConfigError {
    let remedy = match (refused.nearest, &origin) {
        (Some(name), _) => format!("did you mean {name}?"),
        _ if tunable.name == "listen" => address_remedy(value),
        (None, Origin::Flag(_)) if tunable.default.is_empty() => "leave it out for none".to_owned(),
        (None, _) if tunable.default.is_empty() => "unset it for none".to_owned(),
        (None, Origin::Flag(_)) => format!("leave it out for {}", tunable.default),
        (None, _) => format!("unset it for {}", tunable.default),
    };
    let found = value.to_string_lossy().chars().take(60).collect();
    ConfigError::Value { origin, expected: refused.expected, found, remedy }
}

/// Returns what an address lacks.
fn address_remedy(value: &OsStr) -> String {
    let text = value.to_string_lossy();
    let found = text.split(',').map(str::trim).find(|one| !one.is_empty() && !is_address(one));
    let found = found.unwrap_or_default();
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    match found.rsplit_once(':') {
        Some(("", port)) if is_port(port) => format!(
            "write 127.0.0.1:{port} for this machine alone, 0.0.0.0:{port} for every interface"
        ),
        Some((_, port)) if port.parse::<u64>().is_ok() && !is_port(port) => {
            "ports end at 65535".to_owned()
        }
        None if is_port(found) => {
            format!("write 127.0.0.1:{found}, or use --port {found}")
        }
        None if is_host(found) => format!("add the port: {found}:8080"),
        None if found.contains('/') => format!("write unix:{found} for a Unix socket"),
        _ => "leave it out for --host and --port".to_owned(),
    }
}

fn stray_variable(name: &str) -> String {
    let variables: Vec<String> = TUNABLES.iter().map(Tunable::variable).collect();
    match nearest(name, variables.iter().map(String::as_str)) {
        Some(near) => format!("{name} is no setting: ignored; did you mean {near}?"),
        None => format!("{name} is no setting: ignored; `gustnado tuning` lists them all"),
    }
}

/// Returns whether a value is a service link: for a service `gustnado`, Kubernetes sets
/// `GUSTNADO_PORT=tcp://10.0.0.1:80` in every pod of its namespace.
fn is_service_link(value: &OsStr) -> bool {
    value.to_str().is_some_and(|text| {
        ["tcp://", "udp://", "sctp://"].iter().any(|scheme| text.starts_with(scheme))
    })
}

fn is_service_link_name(name: &str) -> bool {
    name.starts_with("GUSTNADO_SERVICE_") || name.starts_with("GUSTNADO_PORT_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layered(flags: &[(&str, &str)], vars: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let flags: Vec<(&str, OsString)> =
            flags.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
        Settings::layered(
            &flags,
            vars.iter().map(|(name, value)| (name.into(), value.into())),
            None,
        )
    }

    #[test]
    fn a_flag_is_over_the_environment_which_is_over_the_default() {
        let vars = [("GUSTNADO_PORT", "81"), ("GUSTNADO_WORKERS", "3"), ("HOME", "/root")];
        let settings = layered(&[("port", "82")], &vars).expect("all valid");
        assert_eq!(settings.config.port, 82);
        assert_eq!(settings.config.workers, 3);
        assert_eq!(settings.origin("port"), &Origin::Flag("--port".into()));
        assert_eq!(settings.origin("workers").to_string(), "environment GUSTNADO_WORKERS");
        assert_eq!(settings.origin("host"), &Origin::Default);
        assert!(settings.warnings.is_empty());
    }

    /// No list of networks would be all networks, and no file of passwords no password.
    #[test]
    fn an_empty_value_opens_nothing() {
        for tunable in TUNABLES.iter().filter(|tunable| tunable.is_guard()) {
            let name = tunable.name;
            let by_flag = layered(&[(name, "")], &[]).expect_err(name).to_string();
            assert!(by_flag.contains("or off for none, found \"\""), "{by_flag}");
            let variable = tunable.variable();
            let by_variable = layered(&[], &[(&variable, " ,")]).expect_err(name).to_string();
            assert!(by_variable.contains(&variable), "{by_variable}");
            let off = layered(&[(name, "off")], &[]).expect("none is meant");
            assert_eq!(tunable.show(&off.config), "none");
        }
    }

    #[test]
    fn the_plain_port_variable_is_the_lowest_above_the_default() {
        let settings = layered(&[], &[("PORT", "3000")]).expect("valid");
        assert_eq!(settings.config.port, 3000);
        assert_eq!(settings.origin("port").to_string(), "environment PORT");
        let both = layered(&[], &[("PORT", "3000"), ("GUSTNADO_PORT", "81")]).expect("valid");
        assert_eq!(both.config.port, 81);
    }

    #[test]
    fn sockets_of_a_service_manager_are_listened_on() {
        let own = std::process::id().to_string();
        let vars = [("LISTEN_PID", own.as_str()), ("LISTEN_FDS", "2"), ("PORT", "80")];
        let settings = layered(&[], &vars).expect("valid");
        assert_eq!(settings.config.listen, ["fd:3", "fd:4"]);
        assert_eq!(settings.origin("listen").to_string(), "environment LISTEN_FDS");
        // A flag takes precedence over the manager.
        let with_flag = layered(&[("listen", "127.0.0.1:81")], &vars).expect("valid");
        assert_eq!(with_flag.config.listen, ["127.0.0.1:81"]);
        // They are another program's, or none.
        for vars in [
            [("LISTEN_PID", "1"), ("LISTEN_FDS", "2")],
            [("LISTEN_PID", own.as_str()), ("LISTEN_FDS", "0")],
            [("LISTEN_PID", own.as_str()), ("LISTEN_FDS", "many")],
        ] {
            assert_eq!(layered(&[], &vars).expect("valid").config.listen, [""; 0], "{vars:?}");
        }
    }

    #[test]
    fn flags_and_variables_read_every_value_alike() {
        for tunable in TUNABLES {
            for value in ["0", "1", "30", "5m", "64k", "auto", "true", "pool", "epoll", "x y", ""] {
                let flag = layered(&[(tunable.name, value)], &[]);
                let variable = layered(&[], &[(tunable.variable().as_str(), value)]);
                assert_eq!(
                    flag.ok().map(|settings| settings.config),
                    variable.ok().map(|settings| settings.config),
                    "{} {value}",
                    tunable.name
                );
            }
        }
    }

    #[test]
    fn what_is_overridden_cannot_be_wrong() {
        let settings = layered(&[("port", "82")], &[("GUSTNADO_PORT", "eighty")]);
        assert_eq!(settings.expect("the flag counts").config.port, 82);
    }

    #[test]
    fn a_bad_value_says_where_what_and_how_to_go_on() {
        let flag = layered(&[("scheduler", "qeue")], &[]).expect_err("no such scheduler");
        assert_eq!(
            flag.to_string(),
            "--scheduler: expected one of pool, pool-shared, queue, queue-shared, found \
             \"qeue\"; did you mean queue?"
        );
        assert_eq!(flag.exit_code(), 2);
        let variable = layered(&[], &[("GUSTNADO_PORT", "eighty")]).expect_err("no number");
        assert_eq!(
            variable.to_string(),
            "GUSTNADO_PORT: expected a whole number from 0 to 65535, found \
             \"eighty\"; unset it for 8080"
        );
        assert_eq!(variable.exit_code(), 78);
    }

    #[test]
    fn a_stray_variable_is_named_with_its_neighbour() {
        let vars = [("GUSTNADO_WORKER", "2"), ("GUSTNADO_QUITE_UNKNOWN_THING", "1")];
        let settings = layered(&[], &vars).expect("nothing fatal");
        assert_eq!(
            settings.warnings,
            [
                "GUSTNADO_QUITE_UNKNOWN_THING is no setting: ignored; `gustnado tuning` lists \
                 them all",
                "GUSTNADO_WORKER is no setting: ignored; did you mean GUSTNADO_WORKERS?",
            ]
        );
    }

    #[test]
    fn kubernetes_service_links_are_not_settings() {
        let vars = [
            ("GUSTNADO_PORT", "tcp://10.1.2.3:80"),
            ("GUSTNADO_SERVICE_HOST", "10.1.2.3"),
            ("GUSTNADO_PORT_80_TCP_ADDR", "10.1.2.3"),
        ];
        let settings = layered(&[], &vars).expect("nothing fatal");
        assert_eq!(settings.config.port, 8080);
        assert_eq!(settings.warnings.len(), 1);
        assert!(settings.warnings[0].contains("enableServiceLinks"));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        let error = layered(&[("prot", "1")], &[]).expect_err("no such setting");
        assert_eq!(error.to_string(), "no setting is called \"prot\"; did you mean \"port\"?");
    }
}
