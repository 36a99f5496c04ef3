//! The table of all counters: each is declared here and nowhere else.
//!
//! [`Stats`], [`WorkerStats`], the cells of a worker's tally, the JSON page, the periodic line and
//! `docs/counters.md` are made from it. A counter with a cell is incremented by its worker; the
//! others are read at their source: the tasks, the kernel, the server.

use super::counter::{Counter, Kind, Number, Visibility};
use super::declare::counters;

counters! {
    ready: Gauge Everywhere,
        server bool "Whether it takes new connections, and will go on: no from the moment on that \
            its end begins.";
    uptime_ms: Counter Everywhere, server u64 "Milliseconds since the start.";
    connections_open: Gauge Everywhere,
        server u64 "Connections open now.",
        worker "Connections open on it now. Where workers share their tasks, those of all are \
            shown at the first one.";
    connections_accepted: Counter Everywhere, server u64 "Connections accepted.";
    connections_added: Counter Everywhere,
        server u64 "Connections that workers have received. The most recently accepted ones may \
            still be in a queue.",
        worker "Connections that it has received.";
    connections_removed: Counter Everywhere,
        server u64 "Connections that have ended.",
        worker "Connections that have ended on it.";
    tasks_live: Gauge Everywhere,
        server u64 "Tasks that exist now: connections, acceptors, and tasks started by handlers.";
    tasks_added: Counter Everywhere,
        only worker "Tasks that it has received, including connections.";
    tasks_ended: Counter Everywhere, only worker "Tasks that have ended on it.";
    requests: Counter Everywhere,
        server u64 "Responses to requests, including malformed ones.",
        worker "Responses that it has written.";
    bytes_sent: Counter Everywhere,
        server u64 "Bytes of responses that the kernel has taken.",
        worker "Bytes of its responses that the kernel has taken.",
        cell BytesSent;
    answers_1xx: Counter Everywhere [answers class "1xx"],
        server u64 "Responses with a status of 100 to 199.", cell Responses1xx;
    answers_2xx: Counter Everywhere [answers class "2xx"],
        server u64 "Responses with a status of 200 to 299.", cell Responses2xx;
    answers_3xx: Counter Everywhere [answers class "3xx"],
        server u64 "Responses with a status of 300 to 399.", cell Responses3xx;
    answers_4xx: Counter Everywhere [answers class "4xx"],
        server u64 "Responses with a status of 400 to 499.",
        worker "Responses with a status of 400 to 499.",
        cell Responses4xx;
    answers_5xx: Counter Everywhere [answers class "5xx"],
        server u64 "Responses with a status of 500 to 599.",
        worker "Responses with a status of 500 to 599.",
        cell Responses5xx;
    bad_requests: Counter Everywhere,
        server u64 "Refused requests: their head or body was malformed or past a limit.",
        worker "Requests that it has refused as malformed or past a limit.",
        cell BadRequests;
    proxy_refused: Counter Everywhere,
        server u64 "Connections without a valid PROXY header where one is required, or with one \
            from an untrusted sender.",
        cell ProxyRefused;
    http2_connections: Counter Everywhere,
        server u64 "Connections that speak HTTP/2.",
        cell Http2Connections;
    http2_resets: Counter Everywhere,
        server u64 "Streams of HTTP/2 that clients have reset.",
        cell Http2Resets;
    http2_stream_errors: Counter Everywhere,
        server u64 "Streams of HTTP/2 that broke a rule, and were reset.",
        cell Http2StreamErrors;
    http2_refused: Counter Everywhere,
        server u64 "Requests refused because their connection had `--h2-streams` of them.",
        cell Http2Refused;
    http2_errors: Counter Everywhere,
        server u64 "Connections that broke a rule of HTTP/2, and were ended.",
        cell Http2Errors;
    http2_ping_timeouts: Counter Everywhere,
        server u64 "Connections of HTTP/2 that were ended because their client had not answered a \
            PING within `--h2-ping-timeout`.",
        cell Http2PingTimeouts;
    http2_floods_resets: Counter OnPages [http2_floods kind "resets"],
        server u64 "Those of them that reset too many streams.",
        cell Http2FloodsResets;
    http2_floods_errors: Counter OnPages [http2_floods kind "errors"],
        server u64 "Those of them that had too many streams reset or refused.",
        cell Http2FloodsErrors;
    http2_floods_idle: Counter OnPages [http2_floods kind "idle_frames"],
        server u64 "Those of them that sent too many frames which serve no request.",
        cell Http2FloodsIdle;
    http2_floods_fields: Counter OnPages [http2_floods kind "fields"],
        server u64 "Those of them whose blocks of fields, or settings, had no end.",
        cell Http2FloodsFields;
    websockets_open: Gauge Everywhere, server u64 "WebSocket connections open now.";
    websockets: Counter Everywhere, server u64 "WebSocket connections opened.", cell WebSockets;
    websocket_received: Counter OnPages [websocket_messages direction "received"],
        server u64 "Messages that WebSocket connections have received.",
        cell WebSocketReceived;
    websocket_sent: Counter OnPages [websocket_messages direction "sent"],
        server u64 "Messages that WebSocket connections have sent.",
        cell WebSocketSent;
    websocket_closes_normal: Counter OnPages [websocket_closes class "normal"],
        server u64 "WebSocket connections closed with 1000, 1001, 1012 or no code.",
        cell WebSocketNormal;
    websocket_closes_error: Counter OnPages [websocket_closes class "error"],
        server u64 "WebSocket connections closed with another code below 3000: an error.",
        cell WebSocketErrors;
    websocket_closes_application: Counter OnPages [websocket_closes class "application"],
        server u64 "WebSocket connections closed with a code of 3000 to 4999.",
        cell WebSocketApplication;
    websocket_closes_lost: Counter OnPages [websocket_closes class "lost"],
        server u64 "WebSocket connections that ended without a close frame.",
        cell WebSocketLost;
    websocket_pings_lost: Counter OnPages,
        server u64 "WebSocket connections lost: a ping was not answered in `--ws-ping-timeout`.",
        cell WebSocketPingsLost;
    websocket_violations: Counter OnPages,
        server u64 "WebSocket connections whose peer broke a rule of the protocol, or a limit.",
        cell WebSocketViolations;
    websocket_origins_refused: Counter OnPages,
        server u64 "Requests for a WebSocket refused because a page of another origin made them.",
        cell WebSocketOriginsRefused;
    handshakes: Counter Everywhere,
        server u64 "TLS handshakes that succeeded.",
        cell Handshakes;
    handshakes_resumed: Counter Everywhere,
        server u64 "Those of them that resumed a session.",
        cell HandshakesResumed;
    handshakes_failed: Counter Everywhere,
        server u64 "Connections whose TLS handshake failed, for any reason.",
        cell HandshakesFailed;
    handshakes_refused: Counter Everywhere,
        server u64 "Those of them that sent what was refused, or no TLS.",
        cell HandshakesRefused;
    handshakes_not_tls: Counter OnPages [handshakes_failed_by_reason reason "not_tls"],
        server u64 "Handshakes refused because the first bytes were neither TLS nor HTTP.",
        cell HandshakesNotTls;
    handshakes_unknown_name: Counter OnPages [handshakes_failed_by_reason reason "unknown_name"],
        server u64 "Handshakes refused because no site has the name that was asked for.",
        cell HandshakesUnknownName;
    handshakes_incompatible: Counter OnPages [handshakes_failed_by_reason reason "incompatible"],
        server u64 "Handshakes refused because there was no common version, cipher, group or \
            protocol.",
        cell HandshakesIncompatible;
    handshakes_client_certificate: Counter OnPages
        [handshakes_failed_by_reason reason "client_certificate"],
        server u64 "Handshakes refused because the client had no certificate where one is \
            required, or a wrong one.",
        cell HandshakesClientCertificate;
    handshakes_alert: Counter OnPages [handshakes_failed_by_reason reason "alert"],
        server u64 "Handshakes that the client ended by an alert, mostly because it does not \
            trust the server's certificate.",
        cell HandshakesAlert;
    handshakes_malformed: Counter OnPages [handshakes_failed_by_reason reason "malformed"],
        server u64 "Handshakes refused for any other reason, such as a malformed message.",
        cell HandshakesMalformed;
    handshakes_plain: Counter Everywhere [handshakes_failed_by_reason reason "plain_http"],
        server u64 "Failed handshakes of clients that sent plain HTTP.",
        cell HandshakesPlain;
    handshakes_slow: Counter Everywhere [handshakes_failed_by_reason reason "slow"],
        server u64 "Handshakes that took longer than `--tls-handshake-timeout` allows.",
        cell HandshakesSlow;
    handshakes_evicted: Counter Everywhere [handshakes_failed_by_reason reason "gave_way"],
        server u64 "Handshakes that gave way to newer ones, of more than `--tls-handshakes`.",
        cell HandshakesEvicted;
    handshakes_lost: Counter OnPages [handshakes_failed_by_reason reason "lost"],
        server u64 "Handshakes in which the client closed or the connection was lost.",
        cell HandshakesLost;
    handshakes_tls12: Counter OnPages [handshakes_by_version version "TLSv1.2"],
        server u64 "Handshakes that agreed on TLS 1.2.",
        cell HandshakesTls12;
    handshakes_tls13: Counter OnPages [handshakes_by_version version "TLSv1.3"],
        server u64 "Handshakes that agreed on TLS 1.3.",
        cell HandshakesTls13;
    handshakes_aes128: Counter OnPages [handshakes_by_cipher cipher "TLS_AES_128_GCM_SHA256"],
        server u64 "Handshakes that agreed on AES-128-GCM by TLS 1.3.",
        cell HandshakesAes128;
    handshakes_aes256: Counter OnPages [handshakes_by_cipher cipher "TLS_AES_256_GCM_SHA384"],
        server u64 "Handshakes that agreed on AES-256-GCM by TLS 1.3.",
        cell HandshakesAes256;
    handshakes_chacha20: Counter OnPages
        [handshakes_by_cipher cipher "TLS_CHACHA20_POLY1305_SHA256"],
        server u64 "Handshakes that agreed on ChaCha20-Poly1305 by TLS 1.3.",
        cell HandshakesChacha20;
    handshakes_ecdsa_aes128: Counter OnPages
        [handshakes_by_cipher cipher "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"],
        server u64 "Handshakes that agreed on AES-128-GCM with ECDSA by TLS 1.2.",
        cell HandshakesEcdsaAes128;
    handshakes_ecdsa_aes256: Counter OnPages
        [handshakes_by_cipher cipher "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"],
        server u64 "Handshakes that agreed on AES-256-GCM with ECDSA by TLS 1.2.",
        cell HandshakesEcdsaAes256;
    handshakes_ecdsa_chacha20: Counter OnPages
        [handshakes_by_cipher cipher "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"],
        server u64 "Handshakes that agreed on ChaCha20-Poly1305 with ECDSA by TLS 1.2.",
        cell HandshakesEcdsaChacha20;
    handshakes_rsa_aes128: Counter OnPages
        [handshakes_by_cipher cipher "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        server u64 "Handshakes that agreed on AES-128-GCM with RSA by TLS 1.2.",
        cell HandshakesRsaAes128;
    handshakes_rsa_aes256: Counter OnPages
        [handshakes_by_cipher cipher "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"],
        server u64 "Handshakes that agreed on AES-256-GCM with RSA by TLS 1.2.",
        cell HandshakesRsaAes256;
    handshakes_rsa_chacha20: Counter OnPages
        [handshakes_by_cipher cipher "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"],
        server u64 "Handshakes that agreed on ChaCha20-Poly1305 with RSA by TLS 1.2.",
        cell HandshakesRsaChacha20;
    handshakes_other_cipher: Counter OnPages [handshakes_by_cipher cipher "other"],
        server u64 "Handshakes that agreed on another cipher suite.",
        cell HandshakesOtherCipher;
    handshakes_x25519mlkem768: Counter OnPages [handshakes_by_group group "X25519MLKEM768"],
        server u64 "Handshakes whose keys were exchanged by X25519MLKEM768.",
        cell HandshakesX25519Mlkem768;
    handshakes_x25519: Counter OnPages [handshakes_by_group group "X25519"],
        server u64 "Handshakes whose keys were exchanged by X25519.",
        cell HandshakesX25519;
    handshakes_secp256r1: Counter OnPages [handshakes_by_group group "secp256r1"],
        server u64 "Handshakes whose keys were exchanged by secp256r1.",
        cell HandshakesSecp256r1;
    handshakes_secp384r1: Counter OnPages [handshakes_by_group group "secp384r1"],
        server u64 "Handshakes whose keys were exchanged by secp384r1.",
        cell HandshakesSecp384r1;
    handshakes_other_group: Counter OnPages [handshakes_by_group group "other"],
        server u64 "Handshakes whose keys were exchanged by another group. A session of TLS 1.2 \
            that is resumed exchanges none.",
        cell HandshakesOtherGroup;
    clients_over: Counter Everywhere,
        server u64 "Connections closed at once because their client had as many as \
            `--connections-per-client` allows.",
        cell ClientsOver;
    timeouts: Counter Everywhere,
        server u64 "Connections closed because the peer was silent or slow for too long.",
        worker "Connections that it has closed because the peer was silent or slow.",
        cell Timeouts;
    idle_closed: Counter Everywhere,
        server u64 "Of these, those that were idle between two requests.",
        worker "Of these, those that were idle between two requests.",
        cell IdleClosed;
    never_asked: Counter Everywhere,
        server u64 "Of these, those that never sent a byte.",
        worker "Of these, those that never sent a byte.",
        cell NeverAsked;
    files_cut: Counter Everywhere,
        server u64 "Connections cut off because a file became shorter while it was sent.",
        worker "Connections that it has cut off because a file became shorter.",
        cell FilesCut;
    files_exhausted: Counter Everywhere,
        server u64 "Files that could not be opened, and listings that were not begun, because \
            no descriptor or memory was free.";
    archives_open: Gauge OnPages,
        server u64 "Archives of folders that are made now.";
    archives_begun: Counter OnPages, server u64 "Archives of folders that were begun.";
    archives_refused: Counter OnPages,
        server u64 "Requests for an archive that got 503 because `--archives-max` of them were \
            made.";
    archives_failed: Counter OnPages,
        server u64 "Archives that could not be completed because the disk failed, or folders lay \
            too deep within each other.";
    deltas_made: Counter OnPages,
        server u64 "Files that were compressed with a dictionary that a client has.";
    deltas_sent: Counter OnPages,
        server u64 "Responses with such a file as their content.";
    accept_exhausted: Counter Everywhere,
        server u64 "Failed accepts because no descriptor or memory was free; accepting then \
            pauses for a moment.";
    accept_failed: Counter Everywhere, server u64 "Accepts that failed for another reason.";
    evicted: Counter Everywhere,
        server u64 "Idle connections closed to make room for others: the connection limit was \
            reached, or descriptors had run out.";
    accept_paused: Counter Everywhere,
        server u64 "Times that accepting paused because the connection limit was reached.";
    handlers_running: Gauge Everywhere,
        server u64 "Handlers that run now under a limit: of their number, of their route, or of \
            threads.";
    handlers_queued: Gauge Everywhere,
        server u64 "Requests that wait for a handler or a thread now.";
    handlers_refused: Counter Everywhere,
        server u64 "Requests that got 503 because too many handlers ran and too many others \
            waited, or because they had waited for too long.";
    access_refused_address: Counter OnPages [access_refused reason "address"],
        server u64 "Requests that got 403 because of their client's address.";
    access_refused_rate: Counter OnPages [access_refused reason "rate"],
        server u64 "Requests that got 429 because their client had sent more than \
            `--rate-limit` allows.";
    access_refused_password: Counter OnPages [access_refused reason "password"],
        server u64 "Requests that got 401: without a user and a password, or with wrong \
            ones.";
    access_refused_busy: Counter OnPages [access_refused reason "busy"],
        server u64 "Requests that got 503 because as many passwords were being checked as \
            may be, and too many others waited.";
    access_refused_signature: Counter OnPages [access_refused reason "signature"],
        server u64 "Requests that got 403 because their URL was not signed.";
    access_refused_expired: Counter OnPages [access_refused reason "expired"],
        server u64 "Requests that got 410 because their URL had expired.";
    access_refused_origin: Counter OnPages [access_refused reason "origin"],
        server u64 "Preflight requests of CORS that got 403 because their origin is not \
            named.";
    responses_gzip: Counter OnPages [responses_compressed coding "gzip"],
        server u64 "Responses whose content was in gzip; those with 304 and 206 count.";
    responses_zstd: Counter OnPages [responses_compressed coding "zstd"],
        server u64 "Responses whose content was in Zstandard.";
    responses_brotli: Counter OnPages [responses_compressed coding "br"],
        server u64 "Responses whose content was in Brotli.";
    compressions: Counter OnPages,
        server u64 "Contents that were compressed: files once, those of handlers each time.";
    compress_bytes_in: Counter OnPages, server u64 "Bytes of these contents before.";
    compress_bytes_out: Counter OnPages, server u64 "Bytes of these contents compressed.";
    compress_refused: Counter OnPages,
        server u64 "Contents that no thread or memory was free to compress.";
    variants_cached: Gauge OnPages, server u64 "Files that were compressed and are kept.";
    variant_bytes: Gauge OnPages, server u64 "Bytes that these files take.";
    password_checks: Counter OnPages,
        server u64 "Passwords that were checked; those that were right in the last minute are not.";
    panics: Counter Everywhere,
        server u64 "Handlers that panicked; the panic was contained.",
        worker "Handlers that panicked on it.",
        cell Panics;
    bodies_cut: Counter Everywhere,
        server u64 "Request bodies that were cut because memory for bodies was short: the slow \
            ones with 408, others with 503.",
        worker "Request bodies that it has cut because memory was short.",
        cell BodiesCut;
    heads_cut: Counter Everywhere,
        server u64 "Parts of request heads that got 503 because memory for heads was short.",
        worker "Parts of request heads that it has cut because memory was short.",
        cell HeadsCut;
    sends_cut: Counter Everywhere,
        server u64 "Connections reset because memory for responses was short, and their client \
            held much of it for long while it took little.",
        worker "Connections that it has reset because their client took too little.",
        cell SendsCut;
    bodies_spooled: Counter Everywhere,
        server u64 "Request bodies that were put to the disk: they were long, or memory for bodies \
            was short.";
    spool_bytes: Gauge Everywhere, server u64 "Bytes of request bodies on the disk now.";
    spool_failed: Counter Everywhere,
        server u64 "Times that a request body could not be put to the disk.";
    memory_heads: Gauge Everywhere,
        server u64 "Bytes held of request heads and later requests that are not parsed yet.";
    memory_bodies: Gauge Everywhere, server u64 "Bytes held of request bodies.";
    memory_sends: Gauge Everywhere,
        server u64 "Bytes held of responses that clients have not taken yet, in buffers larger \
            than 16 KiB.";
    memory_cache: Gauge Everywhere,
        server u64 "Bytes held of prepared responses, by the caches of all workers.";
    memory_receives: Gauge Everywhere,
        server u64 "Bytes of the buffers that requests are received into.";
    memory_queue: Gauge Everywhere,
        server u64 "Bytes held of requests that wait for a handler or a thread, their bodies \
            excepted.";
    memory_websockets: Gauge OnPages,
        server u64 "Bytes held of WebSocket messages, and by what compresses them.";
    waits: Counter Everywhere,
        server u64 "Times that a worker's thread gave up its CPU to wait, as counted by the \
            kernel.",
        worker "Times that its thread gave up its CPU to wait, as counted by the kernel.";
    cpu_ms: Counter Everywhere,
        only worker "CPU time of its thread, user and system together.";
    log_lines_lost: Counter Everywhere,
        server u64 "Lines of the access log that could not be written: the disk was full, or the \
            reader too slow.";
    too_many_requests: Counter InStats,
        server u64 "Responses with 429: the client exceeded its rate of requests.",
        cell TooManyRequests;
    workers: Gauge InStats, server u64 "Current number of workers.";
    workers_grown: Counter InStats,
        server u64 "Workers added because all were busy, including ones that returned.";
    workers_shrunk: Counter InStats,
        server u64 "Workers removed because they were not needed.";
    workers_failed: Counter InStats,
        server u64 "Workers that were needed but could not be started.";
    workers_held: Gauge Everywhere,
        server u64 "Current number of workers that a handler has held for 5 seconds or longer: \
            their other connections wait.";
    reloads: Counter InStats,
        server u64 "Reloads of configurations, or of certificates alone, that were applied.";
    reloads_refused: Counter InStats,
        server u64 "Reloads refused because the new configuration, or a certificate, was invalid.";
    certificates_obtained: Counter InStats,
        server u64 "Certificates obtained from an authority (ACME).";
    certificates_failed: Counter InStats,
        server u64 "Attempts to obtain one that have failed.";
}
