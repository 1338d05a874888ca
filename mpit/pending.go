package mpit

// Pending is a request for a sample that may not be answered yet. It is safe for concurrent use.
type Pending struct {
	done   chan struct{}
	sample Sample
	err    error
}

func newPending() *Pending { return &Pending{done: make(chan struct{})} }

// finished returns a Pending that has failed already.
func finished(err error) *Pending {
	p := newPending()
	p.finish(Sample{}, err)
	return p
}

// finish is called once.
func (p *Pending) finish(s Sample, err error) {
	p.sample, p.err = s, err
	close(p.done)
}

// Done returns a channel that is closed when the answer is there, or will never come.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Sample waits for Done and returns the sample. The error is that of the session (see Session.Err), a *RequestError,
// ErrCongested or ErrFinal.
func (p *Pending) Sample() (Sample, error) {
	<-p.done
	return p.sample, p.err
}
