//! Every setting of the server: one declaration each, and everything else derived from it.
//!
//! [`Config`] holds the values, [`TUNABLES`] declares them (name, unit, default, range, meaning).
//! [`Settings`] is a [`Config`] that remembers where each value came from, and [`Machine`]
//! resolves `auto`. Flags, environment variables, the keys of a configuration file,
//! their schema and `docs/tuning.md` are made from [`TUNABLES`].

pub use gustnado_config::{
    Acceptor, AccessSettings, AcmeChallenge, Archives, BodyPolicy, CacheControl, CacheRule,
    Compress, Config, ConfigError, Dictionaries, EarlyHints, Effective, Field, ForwardedFields,
    HeaderRule, Io, ListenSpec, Listing, Machine, MemoryPlan, Origin, Pace, Placement,
    Precompressed, Resolved, ResponseVersion, RouteLimits, RouteSettings, SchedulerKind,
    SettingGroup, Settings, SocketMemory, StatusRange, TUNABLES, TlsClientAuth, TlsRecords,
    TlsVersionMin, TrafficClass, TrailingSlash, TryFile, Tunable, Unit, WebSocketDeflate, nearest,
    reference,
};

pub use gustnado_config::config_file::SiteTls;
#[doc(hidden)]
pub use gustnado_config::preload_link;
