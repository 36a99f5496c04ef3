//! Protocols, factories, listeners, connectors and delayed calls, on every backend and scheduler.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod back_pressure;
mod calls;
mod clients;
mod ending;
mod examples;
mod handles;
mod listeners;
mod panics;
mod reconnecting;
mod streams;
mod tape;

use back_pressure::*;
use calls::*;
use clients::*;
use ending::*;
use examples::*;
use handles::*;
use listeners::*;
use panics::*;
use reconnecting::*;
use streams::*;

on_every_server!(
    // streams
    what_is_sent_comes_back_whole,
    many_connections_at_once_are_served,
    a_server_may_speak_first,
    lines_arrive_whole_however_they_were_cut,
    a_line_that_is_too_long_ends_the_connection,
    a_line_protocol_may_receive_raw_data_in_between,
    a_connection_knows_both_its_addresses,
    callbacks_of_a_connection_never_run_concurrently,
    without_auto_flush_bytes_wait_for_a_flush,
    // back_pressure
    a_peer_that_does_not_read_is_read_no_more,
    a_writer_is_told_to_wait_and_to_go_on,
    more_than_the_limit_ends_the_connection,
    reading_can_be_paused_and_resumed,
    lines_rest_while_reading_is_paused,
    // handles
    any_thread_may_write_through_a_handle,
    a_handle_takes_all_of_a_write_or_nothing,
    a_thread_and_a_task_can_wait_for_room,
    bytes_leave_in_the_order_they_were_written,
    a_handle_pauses_resumes_and_ends,
    a_handle_outlives_its_connection,
    // ending
    every_end_has_its_reason,
    a_lost_connection_is_written_out_first,
    unread_bytes_do_not_destroy_the_last_ones_written,
    either_side_may_finish_first,
    a_silent_connection_times_out,
    a_slow_reader_is_not_silent,
    a_protocol_may_bear_a_time_out,
    a_connection_that_cannot_be_written_out_is_given_up,
    the_engine_stops_from_a_callback_and_tells_all,
    a_drain_writes_everything_out_and_cuts_what_does_not_end,
    a_stopped_engine_takes_nothing_more,
    // listeners
    each_listener_has_its_own_factory,
    listeners_come_and_go_while_others_work,
    an_address_in_use_is_refused,
    a_factory_may_refuse_a_connection,
    one_accepting_thread_serves_all_listeners,
    no_more_connections_are_open_than_may_be,
    // clients
    a_client_speaks_with_a_server,
    a_connection_comes_from_the_source_address,
    a_connection_to_nowhere_fails,
    connecting_takes_no_longer_than_it_may,
    connecting_can_be_given_up,
    a_connector_can_be_used_again,
    a_client_over_a_unix_socket,
    who_tries_again_at_once_does_not_hold_up_the_end,
    many_megabytes_both_ways_at_once,
    // reconnecting
    a_lost_connection_is_made_again,
    a_server_that_comes_later_is_found,
    enough_is_enough,
    // calls
    calls_are_made_in_their_time,
    a_call_can_be_taken_back_and_moved,
    calls_from_threads_are_made_in_order,
    a_delayed_call_may_use_a_connection,
    many_delayed_calls_wait_at_once,
    // panics
    a_panic_ends_its_connection_only,
    a_panic_in_a_factory_or_a_call_is_contained,
    // examples
    the_echo_examples_speak_with_each_other,
    the_echo_client_waits_for_its_server,
    a_chat_is_heard_by_all,
    an_upload_is_listed_and_served,
);

on_every_server!(alone: an_engine_leaves_nothing_behind);
