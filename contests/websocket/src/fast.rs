//! fastwebsockets behind hyper, on one thread of tokio.

use fastwebsockets::{FragmentCollector, OpCode, WebSocketError, upgrade};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::Failure;

async fn open(mut request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, WebSocketError> {
    let (response, opening) = upgrade::upgrade(&mut request)?;
    tokio::task::spawn_local(async move {
        if let Ok(mut socket) = opening.await {
            socket.set_writev(false);
            socket.set_auto_pong(true);
            _ = echo(FragmentCollector::new(socket)).await;
        }
    });
    Ok(response)
}

async fn echo(
    mut socket: FragmentCollector<TokioIo<hyper::upgrade::Upgraded>>,
) -> Result<(), WebSocketError> {
    loop {
        let frame = socket.read_frame().await?;
        match frame.opcode {
            OpCode::Close => return Ok(()),
            OpCode::Text | OpCode::Binary => socket.write_frame(frame).await?,
            _ => {}
        }
    }
}

pub async fn serve(address: String) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::task::spawn_local(async move {
            let connection = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(open))
                .with_upgrades();
            _ = connection.await;
        });
    }
}
