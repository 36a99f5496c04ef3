// The peer of crates/server/examples/echo.rs in Node: 19 bytes at /echo. Its only argument is the port.
"use strict";
const http = require("http");

const greeting = Buffer.from("Hello from Node, v2");
const server = http.createServer((request, response) => {
  if (request.url !== "/echo") {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": greeting.length });
  response.end(greeting);
});
server.listen(Number(process.argv[2]), "127.0.0.1", 4096);
