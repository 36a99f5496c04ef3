//! Writes the service and its client by the names and types of `grpc/testing/test.proto`. There is
//! no compiler of .proto files in this: the messages are in `src/messages.rs`.

use tonic_build::manual::{Builder, Method, MethodBuilder, Service};

fn main() {
    let one = |name, route, input, output| method(name, route, input, output).build();
    let up = |name, route, input, output| method(name, route, input, output).client_streaming();
    let down = |name, route, input, output| method(name, route, input, output).server_streaming();
    let tested = Service::builder()
        .name("TestService")
        .package("grpc.testing")
        .method(one("empty_call", "EmptyCall", "Empty", "Empty"))
        .method(one("unary_call", "UnaryCall", "SimpleRequest", "SimpleResponse"))
        .method(
            down("streaming_output_call", "StreamingOutputCall", "OutputRequest", "OutputResponse")
                .build(),
        )
        .method(
            up("streaming_input_call", "StreamingInputCall", "InputRequest", "InputResponse")
                .build(),
        )
        .method(
            up("full_duplex_call", "FullDuplexCall", "OutputRequest", "OutputResponse")
                .server_streaming()
                .build(),
        )
        .method(one("unimplemented_call", "UnimplementedCall", "Empty", "Empty"))
        .build();
    Builder::new().compile(&[tested]);
}

fn method(name: &str, route: &str, input: &str, output: &str) -> MethodBuilder {
    Method::builder()
        .name(name)
        .route_name(route)
        .input_type(format!("crate::messages::{input}"))
        .output_type(format!("crate::messages::{output}"))
        .codec_path("tonic_prost::ProstCodec")
}
