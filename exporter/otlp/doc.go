// Package otlp pushes what an exporter.Exporter has to a receiver of the OpenTelemetry protocol, over gRPC or HTTP.
//
// Whoever imports package exporter alone does not get gRPC with it.
//
// A push reads the source once, packs the data into messages that receivers take (batch.go) and sends one after the
// other with the SDK's exporters (client.go). There is no queue: what could not be sent is contained in the next push,
// for the source is cumulative.
package otlp
