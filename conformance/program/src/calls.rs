//! Calls by tonic's own client, each a case with a name.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::Failure;
use crate::messages::{
    EchoStatus, Empty, InputRequest, OutputRequest, ResponseParameters, SimpleRequest, payload,
    size,
};
use crate::service::TestServiceClient;

type Client = TestServiceClient<Channel>;

/// The sizes of grpc's own tests.
const SIZES_UP: [i32; 4] = [27_182, 8, 1_828, 45_904];
const SIZES_DOWN: [i32; 4] = [31_415, 9, 2_653, 58_979];
/// Text that has to be encoded in a field.
const ODD_TEXT: &str =
    "\t\ntest with whitespace\r\nand Unicode BMP \u{263a} and non-BMP \u{1f608}\t\n";
const INITIAL: &str = "x-grpc-test-echo-initial";
const TRAILING: &str = "x-grpc-test-echo-trailing-bin";

/// Runs one case.
///
/// - `folder`: has the authority of the server's certificate.
pub(crate) fn run(url: &str, case: &str, folder: Option<&Path>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let mut endpoint = Endpoint::from_shared(url.to_owned())?;
        if let Some(folder) = folder {
            let root = Certificate::from_pem(std::fs::read(folder.join("root.pem"))?);
            let tls = ClientTlsConfig::new().ca_certificate(root).domain_name("localhost");
            endpoint = endpoint.tls_config(tls)?;
        }
        let client = TestServiceClient::new(endpoint.connect().await?);
        timeout(Duration::from_secs(30), case_of(case, client)).await?
    })
}

async fn case_of(case: &str, client: Client) -> Result<(), Failure> {
    match case {
        "unary" => unary(client).await,
        "large-unary" => large_unary(client).await,
        "server-streaming" => server_streaming(client).await,
        "client-streaming" => client_streaming(client).await,
        "both-ways" => both_ways(client).await,
        "empty-stream" => empty_stream(client).await,
        "a-megabyte-each-way" => megabytes(client).await,
        "status" => status(client).await,
        "status-behind-messages" => status_behind_messages(client).await,
        "odd-status" => odd_status(client).await,
        "metadata" => metadata(client).await,
        "unimplemented" => unimplemented(client).await,
        "deadline" => deadline(client).await,
        "begin" => begin(client).await,
        "many" => many(client).await,
        _ => Err(format!("no case {case}").into()),
    }
}

fn expect(condition: bool, told: impl FnOnce() -> String) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(told().into()) }
}

fn asking_for(sizes: &[i32]) -> OutputRequest {
    let response_parameters =
        sizes.iter().map(|size| ResponseParameters { size: *size, interval_us: 0 }).collect();
    OutputRequest { response_parameters, ..OutputRequest::default() }
}

fn ending_with(code: Code, message: &str) -> Option<EchoStatus> {
    Some(EchoStatus { code: code as i32, message: message.to_owned() })
}

async fn unary(mut client: Client) -> Result<(), Failure> {
    client.empty_call(Empty {}).await?;
    Ok(())
}

async fn large_unary(mut client: Client) -> Result<(), Failure> {
    let asked = SimpleRequest {
        response_size: 314_159,
        payload: payload(271_828),
        ..SimpleRequest::default()
    };
    let bytes = size(client.unary_call(asked).await?.into_inner().payload.as_ref());
    expect(bytes == 314_159, || format!("{bytes} bytes"))
}

async fn server_streaming(mut client: Client) -> Result<(), Failure> {
    let mut stream = client.streaming_output_call(asking_for(&SIZES_DOWN)).await?.into_inner();
    let mut sizes = Vec::new();
    while let Some(message) = stream.message().await? {
        sizes.push(size(message.payload.as_ref()));
    }
    expect(sizes == SIZES_DOWN, || format!("{sizes:?}"))
}

async fn client_streaming(mut client: Client) -> Result<(), Failure> {
    let messages = SIZES_UP.map(|size| InputRequest { payload: payload(size) });
    let sum = client.streaming_input_call(tokio_stream::iter(messages)).await?.into_inner();
    expect(sum.aggregated_payload_size == 74_922, || format!("{sum:?}"))
}

/// Each message is sent once the one before it has been responded to.
async fn both_ways(mut client: Client) -> Result<(), Failure> {
    let (sender, receiver) = mpsc::channel(1);
    let response = client.full_duplex_call(ReceiverStream::new(receiver)).await?;
    let mut stream = response.into_inner();
    for (up, down) in SIZES_UP.into_iter().zip(SIZES_DOWN) {
        sender.send(OutputRequest { payload: payload(up), ..asking_for(&[down]) }).await?;
        let message = stream.message().await?.ok_or("the stream is over")?;
        let bytes = size(message.payload.as_ref());
        expect(bytes == down, || format!("{bytes} bytes, not {down}"))?;
    }
    drop(sender);
    expect(stream.message().await?.is_none(), || "a message too many".to_owned())?;
    let trailers = stream.trailers().await?.ok_or("no trailers")?;
    let status = trailers.get("grpc-status");
    expect(status.is_some_and(|status| status == "0"), || format!("{trailers:?}"))
}

async fn empty_stream(mut client: Client) -> Result<(), Failure> {
    let response = client.full_duplex_call(tokio_stream::empty()).await?;
    expect(response.into_inner().message().await?.is_none(), || "a message".to_owned())
}

/// More than any window, in both directions at once.
async fn megabytes(mut client: Client) -> Result<(), Failure> {
    let messages =
        (0..100).map(|_| OutputRequest { payload: payload(65_536), ..asking_for(&[65_536]) });
    let response = client.full_duplex_call(tokio_stream::iter(messages)).await?;
    let (mut stream, mut sum) = (response.into_inner(), 0);
    while let Some(message) = stream.message().await? {
        sum += size(message.payload.as_ref());
    }
    expect(sum == 6_553_600, || format!("{sum} bytes"))
}

fn is(status: &Status, code: Code, message: &str) -> Result<(), Failure> {
    let is_it = status.code() == code && status.message() == message;
    expect(is_it, || format!("{status:?}"))
}

async fn status(mut client: Client) -> Result<(), Failure> {
    let response_status = ending_with(Code::Unknown, "test status message");
    let asked = SimpleRequest { response_status: response_status.clone(), ..Default::default() };
    let error = client.unary_call(asked).await.err().ok_or("it succeeds")?;
    is(&error, Code::Unknown, "test status message")?;
    let asked = OutputRequest { response_status, ..OutputRequest::default() };
    let response = client.full_duplex_call(tokio_stream::once(asked)).await;
    let error = match response {
        Ok(response) => response.into_inner().message().await.err().ok_or("it succeeds")?,
        Err(error) => error,
    };
    is(&error, Code::Unknown, "test status message")
}

async fn status_behind_messages(mut client: Client) -> Result<(), Failure> {
    let response_status = ending_with(Code::DataLoss, "behind all of them");
    let asked = OutputRequest { response_status, ..asking_for(&SIZES_DOWN) };
    let mut stream = client.streaming_output_call(asked).await?.into_inner();
    for wanted in SIZES_DOWN {
        let message = stream.message().await?.ok_or("the stream is over")?;
        expect(size(message.payload.as_ref()) == wanted, || "another size".to_owned())?;
    }
    let error = stream.message().await.err().ok_or("it succeeds")?;
    is(&error, Code::DataLoss, "behind all of them")
}

async fn odd_status(mut client: Client) -> Result<(), Failure> {
    let response_status = ending_with(Code::Unknown, ODD_TEXT);
    let asked = SimpleRequest { response_status, ..SimpleRequest::default() };
    let error = client.unary_call(asked).await.err().ok_or("it succeeds")?;
    is(&error, Code::Unknown, ODD_TEXT)
}

async fn metadata(mut client: Client) -> Result<(), Failure> {
    let trailing = MetadataValue::from_bytes(&[0xab, 0xab, 0xab]);
    let initial: MetadataValue<_> = "test_initial_metadata_value".parse()?;
    let mut asked = Request::new(tokio_stream::once(asking_for(&[9])));
    asked.metadata_mut().insert(INITIAL, initial.clone());
    asked.metadata_mut().insert_bin(TRAILING, trailing.clone());
    let response = client.full_duplex_call(asked).await?;
    expect(response.metadata().get(INITIAL) == Some(&initial), || format!("{response:?}"))?;
    let mut stream = response.into_inner();
    let trailers = stream.trailers().await?.ok_or("no trailers")?;
    expect(trailers.get_bin(TRAILING) == Some(&trailing), || format!("{trailers:?}"))
}

async fn unimplemented(mut client: Client) -> Result<(), Failure> {
    let error = client.unimplemented_call(Empty {}).await.err().ok_or("it succeeds")?;
    is(&error, Code::Unimplemented, "it is not there")
}

/// A call without an end.
fn endless() -> SimpleRequest {
    SimpleRequest { response_size: -1, ..SimpleRequest::default() }
}

async fn deadline(mut client: Client) -> Result<(), Failure> {
    let began = Instant::now();
    let mut asked = Request::new(endless());
    asked.set_timeout(Duration::from_millis(300));
    let error = client.unary_call(asked).await.err().ok_or("it succeeds")?;
    let is_one = matches!(error.code(), Code::DeadlineExceeded | Code::Cancelled);
    expect(is_one && began.elapsed() < Duration::from_secs(5), || format!("{error:?}"))?;
    // The connection goes on.
    unary(client).await
}

/// Begins calls of each kind, and cancels them once they run: the program prints a line in between,
/// and its starter looks at what runs.
async fn begin(client: Client) -> Result<(), Failure> {
    let calls = |mut client: Client| async move {
        let slow = OutputRequest {
            response_parameters: vec![ResponseParameters { size: 1, interval_us: 10_000 }; 10_000],
            ..OutputRequest::default()
        };
        let mut down = client.streaming_output_call(slow).await?.into_inner();
        down.message().await?;
        let (_sender, receiver) = mpsc::channel::<OutputRequest>(1);
        let both = client.full_duplex_call(ReceiverStream::new(receiver)).await?;
        let whole = client.unary_call(endless()).await;
        drop((down, both));
        whole
    };
    let first = timeout(Duration::from_secs(1), calls(client.clone())).await;
    println!("cancelled");
    expect(first.is_err(), || "a call has ended by itself".to_owned())?;
    sleep(Duration::from_millis(500)).await;
    unary(client).await
}

/// Calls at once, more than a connection may have: the client waits for room.
async fn many(client: Client) -> Result<(), Failure> {
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..300 {
        calls.spawn(server_streaming(client.clone()));
    }
    while let Some(done) = calls.join_next().await {
        done??;
    }
    Ok(())
}
