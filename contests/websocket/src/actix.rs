//! actix-web with actix-ws, as its documentation has an echo.

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, rt, web};
use actix_ws::Message;

use crate::Failure;

async fn echo(request: HttpRequest, body: web::Payload) -> actix_web::Result<HttpResponse> {
    let (response, mut session, mut messages) = actix_ws::handle(&request, body)?;
    rt::spawn(async move {
        while let Some(Ok(message)) = messages.recv().await {
            let sent = match message {
                Message::Text(text) => session.text(text).await,
                Message::Binary(bytes) => session.binary(bytes).await,
                Message::Ping(bytes) => session.pong(&bytes).await,
                Message::Close(_) => break,
                _ => Ok(()),
            };
            if sent.is_err() {
                break;
            }
        }
    });
    Ok(response)
}

pub fn serve(address: &str) -> Result<(), Failure> {
    rt::System::new().block_on(async {
        HttpServer::new(|| App::new().route("/echo", web::get().to(echo)))
            .workers(1)
            .backlog(65_535)
            .bind(address)?
            .run()
            .await?;
        Ok(())
    })
}
