//! A WebSocket that sends each message back, and the page that tries it.
//!
//! Run it with `cargo run --release --example websocket -- 127.0.0.1:3456`, and open
//! `http://127.0.0.1:3456/`. Its settings are variables, such as `GUSTNADO_TLS_CERT` and
//! `GUSTNADO_WS_PING`.

use gustnado::config::Settings;
use gustnado::websocket::{WebSocket, websocket};
use gustnado::{Request, Response, Server};

const PAGE: &str = "<!doctype html><title>Echo</title><form><input autofocus><button>Send</button>\
    </form><ol></ol><script>
const socket = new WebSocket(location.href.replace(/^http/, 'ws') + 'echo')
const input = document.querySelector('input'), list = document.querySelector('ol')
socket.onmessage = event => list.append(Object.assign(document.createElement('li'), \
{ textContent: event.data }))
document.forms[0].onsubmit = () => { socket.send(input.value); input.value = ''; return false }
</script>";

async fn echo(mut socket: WebSocket) {
    while let Ok(Some(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    let settings = Settings::layered(&[], std::env::vars_os(), None)?;
    // The default limits are 16 MiB for a message, 1 MiB for a frame, and 1,024 frames for each
    // message. Autobahn's fuzzing client sends more.
    let echo = websocket(echo).frame_bytes_max(16 << 20).fragments_max(100_000);
    let server = Server::new()
        .config(settings.config)
        .get("/", |_: &Request| Response::html(PAGE))
        .get("/echo", echo);
    Ok(server.listen(&address)?.run()?)
}
