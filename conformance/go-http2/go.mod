module gustnado.example/conformance-http2

go 1.26.0

require golang.org/x/net v0.47.0

require golang.org/x/text v0.43.0 // indirect
