//! axum and other services of tower, on every backend and scheduler.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod answers;
mod app;
mod beside_axum;
mod context;
mod example;
mod layers;
mod over_http2;
mod reach;
mod serving;
mod streams;
mod upgrades;

use answers::*;
use app::*;
use beside_axum::*;
use context::*;
use example::*;
use layers::*;
use over_http2::*;
use reach::*;
use serving::*;
use streams::*;
use upgrades::*;

use std::future::Future;
use std::task::{Context, Poll};

use axum::Router;
use gustnado::{Routes, ServiceError, tower};
use harness::client::request;
use harness::{Server, Setup};
use tower_service::Service;

on_every_server!(
    // app
    an_axum_app_routes_and_extracts,
    bodies_are_extracted,
    forms_of_several_parts_are_extracted,
    a_service_has_its_place_among_routes,
    a_service_is_told_where_requests_come_from,
    the_head_arrives_as_it_was_sent,
    continue_is_said_when_the_service_reads,
    big_bodies_pass_both_ways,
    an_old_client_is_served_too,
    many_requests_in_one_go_are_answered_in_order,
    // answers
    fields_of_the_connection_stay_the_servers,
    a_service_may_end_the_connection,
    every_status_is_sent_as_it_is,
    answers_without_content_say_what_they_may,
    a_length_that_the_service_says_is_kept_or_the_connection_is_cut,
    a_service_that_fails_is_answered_with_500,
    a_service_that_panics_is_answered_with_500,
    what_a_service_responds_is_compressed_where_that_is_asked_for,
    // streams
    a_stream_is_echoed_as_it_comes,
    events_are_sent_one_by_one_and_kept_alive,
    trailers_follow_the_frames,
    a_body_at_hand_is_sent_with_its_length,
    a_body_that_fails_is_noticed,
    a_client_that_goes_drops_the_service,
    a_client_that_goes_drops_the_stream,
    // layers
    requests_are_traced,
    answers_are_compressed,
    a_slow_service_is_timed_out,
    a_service_that_is_not_ready_is_waited_for,
    too_much_load_is_shed,
    // context
    tokio_sleeps_and_spawns,
    a_service_asks_another_server_with_reqwest,
    a_service_uses_a_database_with_sqlx,
    a_connection_is_given_back_when_the_client_goes,
    a_runtime_can_be_given,
    without_tokio_there_is_none,
    the_runtime_ends_with_the_server,
    // reach
    every_method_reaches_a_service,
    what_asks_about_the_whole_server_reaches_a_fallback,
    a_tunnel_that_no_function_takes_is_closed,
    the_limits_of_a_service_are_its_own,
    a_limit_that_is_asked_for_is_one_that_frameworks_know,
    a_client_that_closes_drops_the_service_at_once,
    a_time_out_strikes_around_a_busy_future,
    a_runtime_of_one_thread_is_refused_at_the_start,
    trailers_are_for_those_who_wait_for_them,
    a_service_is_told_its_peer_as_axum_tells_it,
    a_fallback_has_all_that_a_route_may_have,
    // beside_axum
    apps_answer_as_they_do_beside_axum,
    // over_http2
    an_app_is_told_that_it_is_http2,
    a_call_both_ways_ends_with_trailers,
    trailers_of_a_request_are_its_last_frame,
    trailers_follow_a_body_of_known_length,
    events_come_one_by_one_over_http2,
    uploads_are_extracted_over_http2,
    a_stream_that_is_reset_drops_the_service,
    continue_is_said_over_http2_when_the_service_reads,
    // upgrades
    a_websocket_of_axum_echoes,
    a_websocket_of_axum_echoes_over_http2,
    a_request_that_does_not_ask_is_no_websocket,
    a_service_takes_a_connection_as_it_takes_hypers,
    without_an_upgrade_the_service_is_told,
    an_upgraded_connection_ends_with_either_side,
    a_drain_cuts_an_upgraded_connection_in_the_end,
    // serving
    a_listener_of_the_program_is_served,
    a_socket_is_named_by_its_number,
    a_server_ends_when_an_async_program_says_so,
    what_the_server_refuses_can_be_dressed,
    // example
    the_axum_example_answers,
);

/// A server of an app and nothing else.
fn serve(setup: Setup, app: Router) -> Server {
    Server::routes(setup.config(), Routes::new().fallback(tower(app)))
}

fn post(target: &str, kind: &str, body: &str) -> String {
    let fields = format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    request("POST", target, &fields) + body
}

/// A service made of a function, without axum.
#[derive(Clone)]
struct Plain<F>(F);

impl<F, A, B> Service<http::Request<gustnado::Body>> for Plain<F>
where
    F: FnMut(http::Request<gustnado::Body>) -> A,
    A: Future<Output = Result<http::Response<B>, ServiceError>>,
{
    type Response = http::Response<B>;
    type Error = ServiceError;
    type Future = A;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ServiceError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<gustnado::Body>) -> A {
        (self.0)(request)
    }
}
