//! The Rust programs in the documents, as documentation tests: each is compiled, and run if it ends
//! by itself.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(feature = "acme")]
#[doc = include_str!("../../../docs/acme.md")]
struct AcmeGuide;

#[doc = include_str!("../../../docs/access.md")]
struct AccessGuide;

#[doc = include_str!("../../../docs/access-log.md")]
struct AccessLogGuide;

#[cfg(feature = "json")]
#[doc = include_str!("../../../docs/bodies.md")]
struct BodiesGuide;

#[doc = include_str!("../../../docs/client.md")]
struct ClientGuide;

#[doc = include_str!("../../../docs/compression.md")]
struct CompressionGuide;

#[doc = include_str!("../../../docs/configuration.md")]
struct ConfigurationGuide;

#[doc = include_str!("../../../docs/deployment.md")]
struct DeploymentGuide;

#[doc = include_str!("../../../docs/embedding.md")]
struct EmbeddingGuide;

#[cfg(feature = "tls-any")]
#[doc = include_str!("../../../docs/http2.md")]
struct Http2Guide;

#[doc = include_str!("../../../docs/websocket.md")]
struct WebSocketGuide;

#[doc = include_str!("../../../docs/limits.md")]
struct LimitsGuide;

#[doc = include_str!("../../../docs/pace.md")]
struct PaceGuide;

#[doc = include_str!("../../../docs/protocols.md")]
struct ProtocolsGuide;

#[doc = include_str!("../../../docs/proxies.md")]
struct ProxiesGuide;

#[doc = include_str!("../../../docs/start/rust.md")]
struct StartWithRust;

#[doc = include_str!("../../../docs/tasks.md")]
struct TasksGuide;

#[cfg(feature = "tls-any")]
#[doc = include_str!("../../../docs/tls.md")]
struct TlsGuide;

#[cfg(feature = "tower")]
#[doc = include_str!("../../../docs/tower.md")]
struct TowerGuide;
