"""uvicorn's cases of HTTP and WebSocket that this engine does not pass, each with the reason.

A name without brackets means all parameters of the case. What is listed must fail, and
what is not listed must pass."""

VERSION = "0.54.0"

_REASONS = {
    "an application's mistake that is seen before anything was sent gets 500, and "
    "the connection goes on; uvicorn cuts it": [
        "test_invalid_header_name",
        "test_app_exception",
        "test_no_response_returned",
        "test_missing_start_message",
        "test_partial_response_returned",
        "test_response_header_splitting",
        "test_duplicate_start_message",
        "test_undersized_request",
        "test_oversized_request",
    ],
    "an application's mistake after its response is complete is logged, and the connection goes "
    "on: the client's response was complete; uvicorn cuts it": [
        "test_message_after_body_complete",
        "test_value_returned",
    ],
    "the case reads uvicorn's own access lines; those of here have a flag, --access-log": [
        "test_request_logging",
    ],
    "the case looks into uvicorn's objects: its timer, and whether it has stopped reading": [
        "test_keepalive_timeout_with_pipelined_requests",
        "test_keepalive_timeout_with_pipelined_websocket_upgrade",
        "test_large_post_request",
    ],
    "Transfer-Encoding is the server's: a response whose length is known has Content-Length": [
        "test_chunked_encoding",
        "test_chunked_encoding_empty_body",
    ],
    "--limit-concurrency counts the requests that a handler runs for, and not connections": [
        "test_max_concurrency",
    ],
    "100 Continue is not sent where the body has come already (RFC 9110, 10.1.1 allows that)": [
        "test_100_continue_sent_when_body_consumed",
    ],
    "a WebSocket handshake gets 426 with --ws none; uvicorn without a library for it ignores the "
    "upgrade, and warns": [
        "test_unsupported_ws_upgrade_request",
        "test_unsupported_ws_upgrade_request_warn_on_auto",
    ],
    "an upgrade to anything else is not worth a line in the log, which the case expects": [
        "test_header_upgrade_is_not_websocket_depend_installed",
        "test_header_upgrade_is_websocket_depend_not_installed",
    ],
    "applications by ASGI 2 are not served: asgiref's guarantee_single_callable wraps one": [
        "test_scopes[asyncio-asgi2app-expected_scopes1]",
    ],
    "refused with 400 as in uvicorn, but the page says it in other words": [
        "test_invalid_http_request",
    ],
    "a head that is too large is 431 here, and 400 by h11": [
        "test_huge_headers_h11protocol_failure",
        "test_huge_headers_h11protocol_failure_with_setting",
    ],
    "a head has 65,535 bytes at most here (--limit-head-bytes), and any number by httptools": [
        "test_huge_headers_httptools_will_pass",
        "test_huge_headers_httptools",
        "test_huge_headers_h11_max_incomplete",
    ],
    "the case expects `content-type` in small letters; this one is written `Content-Type`": [
        "test_return_close_header",
        "test_close_connection_with_multiple_requests",
    ],
    "a connection that has said nothing is not accepted yet (TCP_DEFER_ACCEPT), and so is not "
    "closed": [
        "test_shutdown_during_idle",
    ],
    "HTTP/1.0 with `Connection: keep-alive` is kept open, as h11 and nginx do": [
        "test_httptools_http10_keep_alive_disabled",
    ],
}

DIFFERS = {name: reason for reason, names in _REASONS.items() for name in names}

_REASONS_OF_WEBSOCKET = {
    "an application that fails closes with 1011, and one that returns with 1000, whatever it "
    "returns; uvicorn cuts the connection": [
        "test_duplicate_handshake",
        "test_asgi_return_value",
        "test_close_transport_on_asgi_return",
    ],
    "a denial that fails before its content gets 500 in place of its head; uvicorn has sent that, "
    "or has another text": [
        "test_server_reject_connection_with_invalid_status",
        "test_server_multiple_websocket_http_response_start_events",
        "test_server_reject_connection_with_invalid_msg",
        "test_server_reject_connection_with_missing_body",
    ],
    "Server is this server's name, or what the application sends in its place; the date is always "
    "sent": [
        "test_default_server_headers",
        "test_multiple_server_header",
        "test_no_date_header",
    ],
    "the end of a server is 1001, as the protocol says; 1012 is for one that starts again": [
        "test_send_close_on_server_shutdown",
    ],
    "the end of a server waits for the answer to a handshake as for any response, and cuts it when "
    "its time is over; uvicorn tells the application at once": [
        "test_connection_lost_before_handshake_complete",
    ],
    "a client that answers no ping is gone, and gets no close frame": [
        "test_server_keepalive_ping_timeout",
    ],
    "the case drives uvicorn's protocol object, without a socket, or looks into it": [
        "test_frame_after_close_handshake_is_ignored",
        "test_server_keepalive_ping_pong",
        "test_server_keepalive_disabled",
        "test_send_respects_write_backpressure",
        "test_close_waits_for_the_peer_close_frame",
        "test_close_resumes_reads_paused_on_an_unconsumed_message",
        "test_data_frame_while_closing_does_not_pause_reads",
        "test_data_frame_and_peer_close_frame_in_one_read",
        "test_ping_while_closing",
        "test_close_gives_up_when_the_peer_never_replies",
        "test_connection_lost_cancels_the_pending_close_timer",
        "test_shutdown_while_the_close_reply_is_pending",
        "test_send_after_peer_close_raises_client_disconnected",
        "test_connection_lost_unblocks_paused_send",
    ],
}

# Cases that may fail or pass.
MAY_FAIL = {
    "test_send_binary_data_to_server_bigger_than_default_on_websockets"
    "[asyncio-max=defaults sent=defaults+1]":
        "the client's library stumbles where the connection ends while it still sends",
}

OF_WEBSOCKET = {
    name: reason for reason, names in _REASONS_OF_WEBSOCKET.items() for name in names}
