package otlptest

import "time"

// Answer is what a receiver says to a request.
type Answer struct {
	refused         bool
	retry           bool
	after           time.Duration
	rejected        int64
	message         string
	unauthenticated bool
	unavailable     bool
	wait            <-chan struct{}
}

// Accept takes all of a request.
func Accept() Answer { return Answer{} }

// Partial takes a request but for so many points. Zero with a message is a warning.
func Partial(rejected int64, message string) Answer {
	return Answer{rejected: rejected, message: message}
}

// Refuse refuses for good: INVALID_ARGUMENT, or 400.
func Refuse(message string) Answer { return Answer{refused: true, message: message} }

// Busy refuses for now: RESOURCE_EXHAUSTED with RetryInfo, or 429 with Retry-After; HTTP knows whole seconds.
func Busy(after time.Duration) Answer {
	return Answer{refused: true, retry: true, after: after, message: "busy"}
}

// Unavailable refuses for now: UNAVAILABLE with RetryInfo, or 503 with Retry-After.
func Unavailable(after time.Duration) Answer {
	return Answer{refused: true, retry: true, unavailable: true, after: after, message: "unavailable"}
}

// When says the same when the channel is closed, if the client still waits and the receiver still runs.
func (a Answer) When(ready <-chan struct{}) Answer {
	a.wait = ready
	return a
}
