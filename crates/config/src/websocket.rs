//! Declaration of the settings of `WebSocket`s: what each endpoint keeps to that has none of its
//! own.

use std::time::Duration;

use super::Config;
use super::fields::{choice, duration, number};
use super::numbers::{DAY, HOUR};
use super::tunable::{SettingGroup, Tunable};

/// Whether messages of `WebSocket`s are compressed (permessage-deflate, RFC 7692).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebSocketDeflate {
    /// Each message by itself: a connection holds no memory for it.
    #[default]
    On,
    /// With what earlier messages have in common, where the client allows it: it compresses better,
    /// and a connection holds up to 368 KiB for it.
    Context,
    /// Not at all.
    Off,
}

impl WebSocketDeflate {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::On, Self::Context, Self::Off];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["on", "context", "off"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// What the `WebSocket`s of a server keep to, if their endpoint says nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketSettings {
    /// Silence after which a peer is pinged; `None` is never.
    pub ping: Option<Duration>,
    /// Time in which something has to come then.
    pub ping_timeout: Duration,
    /// Largest message, in bytes.
    pub message_bytes_max: u64,
    /// Largest frame, in bytes.
    pub frame_bytes_max: u64,
    /// Most frames of a message.
    pub fragments_max: u32,
    /// Most messages and control frames per second; 0 is no limit.
    pub messages_per_second_max: u32,
    /// Bytes that may wait to be sent before senders wait.
    pub unsent_bytes_max: usize,
    /// Time that a peer has to answer a close frame.
    pub close_timeout: Duration,
    /// Whether messages are compressed.
    pub deflate: WebSocketDeflate,
    /// Smallest message that is compressed, in bytes.
    pub deflate_bytes_min: usize,
}

impl WebSocketSettings {
    /// Returns those of a configuration.
    pub fn of(config: &Config) -> Self {
        Self {
            ping: Some(config.ws_ping).filter(|ping| !ping.is_zero()),
            ping_timeout: config.ws_ping_timeout,
            message_bytes_max: config.ws_message_bytes_max,
            frame_bytes_max: config.ws_frame_bytes_max,
            fragments_max: config.ws_fragments_max,
            messages_per_second_max: config.ws_messages_per_second_max,
            unsent_bytes_max: config.ws_unsent_bytes_max,
            close_timeout: config.ws_close_timeout,
            deflate: config.ws_deflate,
            deflate_bytes_min: config.ws_deflate_bytes_min,
        }
    }
}

pub(super) const PING: Tunable = Tunable {
    name: "ws-ping",
    group: SettingGroup::WebSocket,
    default: "30s",
    doc: "Silence after which a peer is pinged",
    field: duration!(ws_ping, 100..=DAY, or "off"),
};

pub(super) const PING_TIMEOUT: Tunable = Tunable {
    name: "ws-ping-timeout",
    group: SettingGroup::WebSocket,
    default: "20s",
    doc: "Time in which something has to come then; otherwise the peer is lost",
    field: duration!(ws_ping_timeout, 100..=HOUR),
};

pub(super) const MESSAGE_BYTES_MAX: Tunable = Tunable {
    name: "ws-message-bytes-max",
    group: SettingGroup::WebSocket,
    default: "16m",
    doc: "Largest message, also after it is inflated; a longer one closes with 1009",
    field: number!(ws_message_bytes_max, Bytes, 1..=1 << 40),
};

pub(super) const FRAME_BYTES_MAX: Tunable = Tunable {
    name: "ws-frame-bytes-max",
    group: SettingGroup::WebSocket,
    default: "1m",
    doc: "Largest frame of a message",
    field: number!(ws_frame_bytes_max, Bytes, 1..=1 << 40),
};

pub(super) const FRAGMENTS_MAX: Tunable = Tunable {
    name: "ws-fragments-max",
    group: SettingGroup::WebSocket,
    default: "1024",
    doc: "Frames of a message",
    field: number!(ws_fragments_max, Count, 1..=100_000_000),
};

pub(super) const MESSAGES_PER_SECOND_MAX: Tunable = Tunable {
    name: "ws-messages-per-second-max",
    group: SettingGroup::WebSocket,
    default: "unlimited",
    doc: "Messages, pings and pongs that a peer may send per second; more close with 1008",
    field: number!(ws_messages_per_second_max, Count, 1..=1_000_000_000, or "unlimited"),
};

pub(super) const UNSENT_BYTES_MAX: Tunable = Tunable {
    name: "ws-unsent-bytes-max",
    group: SettingGroup::WebSocket,
    default: "1m",
    doc: "Bytes that may wait to be sent to a peer before senders wait",
    field: number!(ws_unsent_bytes_max, Bytes, 1..=1 << 40),
};

pub(super) const CLOSE_TIMEOUT: Tunable = Tunable {
    name: "ws-close-timeout",
    group: SettingGroup::WebSocket,
    default: "5s",
    doc: "Time that a peer has to answer a close frame",
    field: duration!(ws_close_timeout, 1..=HOUR),
};

pub(super) const DEFLATE: Tunable = Tunable {
    name: "ws-deflate",
    group: SettingGroup::WebSocket,
    default: "on",
    doc: "Compress messages by themselves, or with context between them, or not (RFC 7692)",
    field: choice!(ws_deflate, WebSocketDeflate),
};

pub(super) const DEFLATE_BYTES_MIN: Tunable = Tunable {
    name: "ws-deflate-bytes-min",
    group: SettingGroup::WebSocket,
    default: "860",
    doc: "Smallest message that is compressed",
    field: number!(ws_deflate_bytes_min, Bytes, 0..=1 << 40),
};
