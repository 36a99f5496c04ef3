"""The arguments of `gustnado.run`, `Server` and `App.run`. Made by tests/settings_types.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, TypedDict

_Path = str | PathLike[str]


class FolderSettings(TypedDict, total=False):
    """The settings of `App.files`: those of the server that a folder may have of its own."""

    allow: str | Sequence[str] | None
    archive_bytes_max: int | str | None
    archives: Literal["off", "on", "tar.zst", "zip"] | None
    basic_auth: _Path | None
    basic_auth_realm: str | None
    basic_auth_threads: int | None
    body_timeout: float | str | None
    cache_control: Literal["auto", "on", "off"] | None
    charset: str | None
    clean_urls: bool | None
    compress: Literal["off", "on", "gzip", "zstd"] | None
    compress_bytes_min: int | str | None
    compress_cookies: bool | None
    compress_gzip_level: int | None
    compress_types: str | Sequence[str] | None
    compress_zstd_level: int | None
    cors: str | Sequence[str] | None
    cors_credentials: bool | None
    cors_headers: str | Sequence[str] | None
    cors_max_age: float | str | None
    cors_methods: str | Sequence[str] | None
    csp: str | None
    csp_report_only: str | None
    deny: str | Sequence[str] | None
    dictionaries: Literal["auto", "on", "off"] | None
    first_byte_delay: float | str | None
    forbidden: str | Sequence[str] | None
    hash_bytes_max: int | str | None
    hidden: bool | None
    idle_timeout: float | str | None
    immutable_folders: str | Sequence[str] | None
    index: str | Sequence[str] | None
    keep_old_assets: float | str | None
    limit_body_bytes: int | str | None
    listing: Literal["auto", "on", "off"] | None
    listing_readme: bool | None
    mime: str | Sequence[str] | None
    mime_types: _Path | None
    precompressed: Literal["off", "on", "always"] | None
    rate_limit: str | None
    rate_limit_burst: int | Literal["auto"] | None
    rate_limit_clients: int | None
    rate_limit_prefix: int | None
    read_rate: int | str | None
    security_headers: bool | None
    signed_urls: _Path | None
    small_file_bytes_max: int | str | None
    spa: bool | str | None
    trailing_slash: Literal["add", "remove", "ignore"] | None
    try_files: str | Sequence[str] | None
    upload: bool | None
    upload_bytes_max: int | str | None
    upload_overwrite: bool | None
    upload_quota: int | str | None
    write_burst: int | str | None
    write_rate: int | str | None
    write_timeout: float | str | None


class Settings(FolderSettings, total=False):
    """The flags of `gustnado run`, with `_` for `-`. None is as if it were not there."""

    grace: float | None
    accept_delay: float | str | None
    acceptor: Literal["per-worker", "dedicated"] | None
    accepts_per_second: int | Literal["off"] | None
    access_log: _Path | None
    access_log_format: str | None
    acme: str | None
    acme_ca: _Path | None
    acme_challenge: Literal["auto", "http-01", "tls-alpn-01", "dns-persist-01"] | None
    acme_dir: _Path | None
    acme_directory: str | None
    acme_eab_id: str | None
    acme_eab_key: _Path | None
    acme_email: str | None
    acme_profile: str | None
    answer_version: Literal["1.1", "1.0", "as-asked"] | None
    app_dir: _Path | None
    archives_max: int | None
    backlog: int | None
    backlog_of_threads: int | None
    bind: str | Sequence[str] | None
    blocking_queue_timeout: float | str | None
    body_policy: Literal["stream", "memory", "spool"] | None
    body_rate_min: int | str | None
    body_spool: _Path | None
    body_spool_bytes: int | str | None
    cache_bytes: int | str | None
    capture_output: bool | None
    chdir: _Path | None
    client_read_burst: int | str | None
    client_read_rate: int | str | None
    client_write_burst: int | str | None
    client_write_rate: int | str | None
    connections_max: int | Literal["auto"] | None
    connections_per_client: int | Literal["off"] | None
    defer_accept: bool | None
    drain_accept: float | str | None
    early_hints: Literal["navigations", "always", "never"] | None
    env: str | Sequence[str] | None
    env_file: str | Sequence[str] | None
    error_log: _Path | None
    error_page: str | Sequence[str] | None
    factory: bool | None
    fd: int | None
    file_threads: int | Literal["off"] | None
    first_request_timeout: float | str | None
    forwarded_allow_ips: str | Sequence[str] | None
    forwarded_fields: Literal["x-forwarded", "forwarded"] | None
    h2_glitches: int | Literal["unlimited"] | None
    h2_glitches_per_second: int | None
    h2_notsent_lowat: int | str | None
    h2_ping: float | str | None
    h2_ping_timeout: float | str | None
    h2_streams: int | None
    h2_window_bytes: int | str | None
    h2_window_bytes_max: int | str | None
    h2c: bool | None
    half_close_timeout: float | str | None
    handler_queue: int | None
    handler_queue_timeout: float | str | None
    header_timeout: float | str | None
    host: str | None
    hsts: float | str | None
    http1: bool | None
    http2: bool | None
    https_redirect: bool | None
    interface: Literal["auto", "native", "asgi", "wsgi"] | None
    io: Literal["auto", "uring", "epoll"] | None
    lifespan: Literal["auto", "on", "off"] | None
    lifespan_timeout: float | str | None
    limit_body_memory: int | str | None
    limit_concurrency: int | Literal["off"] | None
    limit_head_bytes: int | str | None
    limit_head_memory: int | str | None
    limit_header_fields: int | None
    limit_queue_memory: int | str | None
    limit_receive_memory: int | str | None
    limit_send_memory: int | str | None
    limit_target_bytes: int | str | None
    limit_websocket_memory: int | str | None
    listen: str | Sequence[str] | None
    log_config: _Path | None
    log_connection_errors: bool | None
    log_level: Literal["debug", "info", "warning", "error", "critical"] | None
    loop: Literal["auto", "asyncio", "uvloop"] | None
    max_lifetime: float | str | None
    max_memory: int | str | None
    max_requests: int | None
    max_requests_jitter: int | None
    max_requests_per_connection: int | Literal["unlimited"] | None
    max_worker_rss: int | str | None
    metrics_allow_from: str | None
    metrics_path: str | None
    name: str | None
    no_io_wait_us: int | None
    notsent_lowat: int | str | None
    pace_clients_max: int | None
    pass_delay_us: int | None
    pid: _Path | None
    placement: Literal["spread", "fill"] | None
    port: int | None
    preload: bool | None
    proxy_allow_from: str | Sequence[str] | None
    proxy_protocol: bool | None
    quiet: bool | None
    read_ahead_bytes: int | str | None
    read_burst: int | str | None
    recv_buffer_bytes: int | str | None
    reload: bool | None
    reload_dir: str | Sequence[str] | None
    requests_burst: int | Literal["auto"] | None
    requests_per_second: int | Literal["off"] | None
    root_path: _Path | None
    scheduler: Literal["pool", "pool-shared", "queue", "queue-shared"] | None
    send_buffer_bytes: int | str | None
    server_name: str | None
    server_read_burst: int | str | None
    server_read_rate: int | str | None
    server_write_burst: int | str | None
    server_write_rate: int | str | None
    slots: int | Literal["auto"] | None
    slow_handler: float | str | None
    socket_preference: Literal["none", "latency", "throughput"] | None
    spin_us: int | None
    static: Mapping[str, str] | Sequence[str] | str | None
    stats_interval: float | str | None
    stats_path: str | None
    stream_buffer_bytes: int | str | None
    switch_interval: float | None
    threads: int | None
    timeout: float | str | None
    timeout_graceful_shutdown: float | str | None
    timeout_keep_alive: float | str | None
    tls_cert: _Path | None
    tls_client_auth: Literal["none", "optional", "required"] | None
    tls_client_ca: _Path | None
    tls_client_crl: _Path | None
    tls_handshake_timeout: float | str | None
    tls_handshakes: int | None
    tls_key: _Path | None
    tls_records: Literal["own", "rustls"] | None
    tls_strict_names: bool | None
    tls_ticket_keys: _Path | None
    tls_version_min: Literal["1.2", "1.3"] | None
    uds: _Path | None
    uds_owner: str | None
    uds_permissions: str | None
    umask: str | None
    uring_buffers: int | None
    user: str | None
    workers: int | Literal["auto"] | None
    write_rate_min: int | str | None
    ws: Literal["auto", "none"] | None
    ws_close_timeout: float | str | None
    ws_deflate: Literal["on", "context", "off"] | None
    ws_deflate_bytes_min: int | str | None
    ws_fragments_max: int | None
    ws_frame_bytes_max: int | str | None
    ws_message_bytes_max: int | str | None
    ws_messages_per_second_max: int | Literal["unlimited"] | None
    ws_ping: float | str | None
    ws_ping_timeout: float | str | None
    ws_unsent_bytes_max: int | str | None
