//! `grpc.testing.TestService`, against which every implementation of gRPC tests its client. Its
//! calls are described in grpc's `doc/interop-test-descriptions.md`.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_stream::try_stream;
use futures_util::Stream;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt;
use tokio_stream::StreamExt;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Code, Request, Response, Status, Streaming};
use tower::Service;

use crate::messages::{
    Empty, InputRequest, InputResponse, OutputRequest, OutputResponse, SimpleRequest,
    SimpleResponse, payload, size,
};

/// What `tonic_build` has written of the service.
mod made {
    #![allow(clippy::pedantic, unreachable_pub, missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/grpc.testing.TestService.rs"));
}

pub(crate) use made::test_service_client::TestServiceClient;
use made::test_service_server::{TestService, TestServiceServer};

/// Calls that run now: what a client cancels has to leave them.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// One of them.
struct Running;

impl Running {
    fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The number of calls that run now.
pub(crate) fn running() -> usize {
    RUNNING.load(Ordering::Relaxed)
}

/// The service, ready to be mounted.
pub(crate) fn service() -> EchoFields<TestServiceServer<Tested>> {
    EchoFields(TestServiceServer::new(Tested))
}

/// The service itself.
pub(crate) struct Tested;

type Items<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl TestService for Tested {
    async fn empty_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn unary_call(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<SimpleResponse>, Status> {
        let asked = request.into_inner();
        if let Some(status) = asked.response_status {
            return Err(Status::new(Code::from_i32(status.code), status.message));
        }
        if asked.response_size < 0 {
            // A call without an end, which only its client can end.
            let _running = Running::new();
            return std::future::pending().await;
        }
        Ok(Response::new(SimpleResponse { payload: payload(asked.response_size) }))
    }

    type StreamingOutputCallStream = Items<OutputResponse>;

    async fn streaming_output_call(
        &self,
        request: Request<OutputRequest>,
    ) -> Result<Response<Self::StreamingOutputCallStream>, Status> {
        let asked = request.into_inner();
        let running = Running::new();
        Ok(Response::new(Box::pin(try_stream! {
            let _running = running;
            for each in asked.response_parameters {
                tokio::time::sleep(micros(each.interval_us)).await;
                yield OutputResponse { payload: payload(each.size) };
            }
            // (Behind messages a status can only be in the trailers.)
            if let Some(status) = asked.response_status {
                Err(Status::new(Code::from_i32(status.code), status.message))?;
            }
        })))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<InputRequest>>,
    ) -> Result<Response<InputResponse>, Status> {
        let _running = Running::new();
        let mut asked = request.into_inner();
        let mut sum = 0;
        while let Some(message) = asked.message().await? {
            sum += size(message.payload.as_ref());
        }
        Ok(Response::new(InputResponse { aggregated_payload_size: sum }))
    }

    type FullDuplexCallStream = Items<OutputResponse>;

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<OutputRequest>>,
    ) -> Result<Response<Self::FullDuplexCallStream>, Status> {
        let mut asked = request.into_inner();
        let running = Running::new();
        Ok(Response::new(Box::pin(try_stream! {
            let _running = running;
            while let Some(message) = asked.next().await {
                let message = message?;
                if let Some(status) = message.response_status {
                    Err(Status::new(Code::from_i32(status.code), status.message))?;
                }
                for each in message.response_parameters {
                    tokio::time::sleep(micros(each.interval_us)).await;
                    yield OutputResponse { payload: payload(each.size) };
                }
            }
        })))
    }

    async fn unimplemented_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented("it is not there"))
    }
}

fn micros(count: i32) -> Duration {
    Duration::from_micros(u64::try_from(count).unwrap_or_default())
}

/// Sends back two fields of a request, one in the head and one in the trailers: the case
/// `custom_metadata`.
#[derive(Clone)]
pub(crate) struct EchoFields<S>(S);

const INITIAL: HeaderName = HeaderName::from_static("x-grpc-test-echo-initial");
const TRAILING: HeaderName = HeaderName::from_static("x-grpc-test-echo-trailing-bin");

impl<S: NamedService> NamedService for EchoFields<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for EchoFields<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Future: Send + 'static>,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let of = |name: &HeaderName| request.headers().get(name).cloned();
        let (initial, trailing) = (of(&INITIAL), of(&TRAILING));
        let response = self.0.call(request);
        Box::pin(async move { Ok(echo(response.await?, initial, trailing)) })
    }
}

fn echo(
    mut response: http::Response<Body>,
    initial: Option<HeaderValue>,
    trailing: Option<HeaderValue>,
) -> http::Response<Body> {
    if let Some(initial) = initial {
        response.headers_mut().insert(INITIAL, initial);
    }
    let Some(trailing) = trailing else { return response };
    let trailers = HeaderMap::from_iter([(TRAILING, trailing)]);
    response.map(|body| Body::new(body.with_trailers(ready(Some(Ok(trailers))))))
}
