//! Routes with what their settings ask: limits, header fields, a gate.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use gustnado_access::{HeaderRules, preset_headers};
use gustnado_config::{Headers, RouteSettings};

use super::access_gate::AccessGate;
use super::error::RouteError;
use super::{Route, RouteOptions, RoutePace, bounded_ms, rules};
use crate::fields;
use crate::middleware::Middleware;

/// A route whose settings are known.
#[derive(Clone)]
pub(super) struct PreparedRoute {
    pub(super) route: Route,
    pub(super) settings: RouteSettings,
    /// Header fields of its responses that do not have them yet.
    pub(super) fields: Headers,
    /// What its responses pass, its own middleware excepted; the outermost first. The fields are
    /// among it.
    pub(super) after: Vec<Middleware>,
    /// Responses depend on more than the fields.
    pub(super) has_rules: bool,
    /// `None`: every request may come.
    pub(super) gate: Option<Arc<AccessGate>>,
}

impl PreparedRoute {
    /// - `fields`: those of what is around it.
    /// - `gate`: what its requests meet first.
    pub(super) fn new(
        mut route: Route,
        settings: RouteSettings,
        fields: &Headers,
        gate: &Arc<AccessGate>,
    ) -> Result<Self, RouteError> {
        limit_options(&mut route.options, &settings);
        limit_pace(&mut route.pace, &settings);
        let mut route = route.with_pace();
        let compiled = HeaderRules::new(&settings.header_rules).map_err(RouteError::Access)?;
        let mut fields = preset_headers(&settings.access).with(fields).with(&route.fields);
        let mut compiled = Some(compiled);
        if route.folder.is_some()
            && let Some(of_rules) = rules::fields_for_all(&settings.header_rules)
        {
            fields = fields.with(&of_rules);
            compiled = None;
        }
        let of_rules = compiled.and_then(rules::middleware);
        let of_origin = gate.origin_middleware();
        let has_rules = of_rules.is_some() || of_origin.is_some();
        let after = of_rules.into_iter().chain(of_origin).chain(fields::middleware(&fields));
        let after = after.collect();
        route.fields = Headers::default();
        let gate = Some(gate).filter(|gate| !gate.is_open()).cloned();
        Ok(Self { route, settings, fields, after, has_rules, gate })
    }

    /// Returns it for a handler that has options of its own.
    pub(super) fn with_options(&self, own: &RouteOptions) -> Self {
        let mut options = self.route.options.beside(own);
        limit_options(&mut options, &self.settings);
        Self { route: Route { options, ..self.route.clone() }, ..self.clone() }
    }
}

/// Gives options the limits that their settings have and they have not.
fn limit_options(options: &mut RouteOptions, settings: &RouteSettings) {
    let limits = &settings.limits;
    let ms = |own: Option<NonZeroU32>, of_settings: Option<Duration>| {
        own.or_else(|| bounded_ms(of_settings?))
    };
    let idle = Some(settings.access.idle_timeout).filter(|idle| !idle.is_zero());
    options.limit_body_bytes = options.limit_body_bytes.or(limits.body_bytes_max);
    options.idle_ms = ms(options.idle_ms, idle);
    options.body_ms = ms(options.body_ms, limits.body_timeout.or(idle));
    options.write_ms = ms(options.write_ms, limits.write_timeout.or(idle));
}

/// Does the same for the pace.
fn limit_pace(pace: &mut RoutePace, settings: &RouteSettings) {
    let limits = &settings.limits;
    let rate = |own: &mut u64, of_settings: Option<u64>| {
        if *own == 0 {
            *own = of_settings.unwrap_or(0);
        }
    };
    rate(&mut pace.write, limits.write_rate);
    rate(&mut pace.burst, limits.write_burst);
    rate(&mut pace.read, limits.read_rate);
    if pace.first_byte_delay.is_zero() {
        pace.first_byte_delay = limits.first_byte_delay.unwrap_or_default();
    }
}
