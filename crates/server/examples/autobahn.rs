//! Runs the WebSocket client against Autobahn's fuzzing server: each case is an echo of what comes.
//!
//! ```text
//! wstest -m fuzzingserver -s spec.json
//! cargo run --release -p gustnado --example autobahn -- ws://127.0.0.1:9001 gustnado
//! ```
//!
//! The server writes the report, which is read by `conformance/websocket_client.py`.

use std::error::Error;
use std::time::Duration;

use gustnado::client::{Client, ClientOptions};
use gustnado::websocket::{
    CloseCode, DeflateOptions, OpenError, WebSocket, WebSocketError, WebSocketRequest,
};

/// Longer than any message of the cases.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// A case is given up after so long.
const CASE_TIME: Duration = Duration::from_mins(2);

#[derive(Clone)]
struct Cases {
    client: Client,
    url: String,
    agent: String,
}

impl Cases {
    async fn open(&self, target: &str) -> Result<WebSocket, OpenError> {
        let request = WebSocketRequest::new(&self.client, &format!("{}{target}", self.url));
        request
            .message_bytes_max(MESSAGE_BYTES_MAX)
            .frame_bytes_max(MESSAGE_BYTES_MAX)
            .fragments_max(u32::MAX)
            // The server chooses among all that there is, and messages of each size are compressed.
            .deflate(Some(DeflateOptions { keeps_context: true, window_bits_max: 15 }))
            .deflate_bytes_min(0)
            .open()
            .await
    }

    /// Returns the text that the server sends.
    async fn ask(&self, target: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
        let mut socket = self.open(target).await?;
        let message = socket.recv().await?.ok_or("nothing was sent")?;
        let text = message.text().ok_or("no text was sent")?.to_owned();
        socket.end(CloseCode::NORMAL, "").await;
        Ok(text)
    }

    async fn run(&self, case: u32) -> Result<(), OpenError> {
        let target = format!("/runCase?case={case}&agent={}", self.agent);
        let mut socket = self.open(&target).await?;
        loop {
            match socket.recv().await {
                Ok(Some(message)) => _ = socket.send(message).await,
                // Many cases break a rule; the server looks at what it is told then.
                Ok(None) | Err(WebSocketError::Lost(_)) => break,
                Err(_) => {}
            }
        }
        socket.end(CloseCode::NORMAL, "").await;
        Ok(())
    }

    async fn run_all(self) -> Result<u32, Box<dyn Error + Send + Sync>> {
        let count: u32 = self.ask("/getCaseCount").await?.parse()?;
        for case in 1..=count {
            match gustnado::task::timeout(CASE_TIME, self.run(case)).await {
                Some(Ok(())) => {}
                Some(Err(error)) => eprintln!("case {case}: {error}"),
                None => eprintln!("case {case}: not over within {CASE_TIME:?}"),
            }
        }
        let reports = self.open(&format!("/updateReports?agent={}", self.agent)).await?;
        reports.end(CloseCode::NORMAL, "").await;
        Ok(count)
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut words = std::env::args().skip(1);
    let url = words.next().unwrap_or_else(|| "ws://127.0.0.1:9001".to_owned());
    let agent = words.next().unwrap_or_else(|| "gustnado".to_owned());
    let cases = Cases { client: Client::new(ClientOptions::default()), url, agent };
    let count = gustnado::task::block_on(cases.run_all())??;
    println!("{count} cases were run");
    Ok(())
}
