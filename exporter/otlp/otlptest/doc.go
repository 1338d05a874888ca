// Package otlptest is a receiver of the OpenTelemetry protocol for tests, as net/http/httptest is a server of HTTP:
// within the process, on a real socket of the loopback interface, over gRPC or HTTP. It keeps what it gets, says what
// it is told to say and can go away and come back at the same address.
package otlptest
