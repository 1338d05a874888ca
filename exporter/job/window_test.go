package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// What is remembered is bounded, and a report is of the time since the newest moment that is old enough.
func TestWindow(t *testing.T) {
	w := Window{Longest: 10 * time.Second}
	assert.Empty(t, w.Since(time.Second), "nothing is known yet")
	at := func(second int) time.Time { return jobtest.Began.Add(time.Duration(second) * time.Second) }
	for second := range 60 {
		reports := Of(jobtest.Late(), nil)
		reports[0].Time, reports[0].Job.Ended = at(second), nil
		w.Add(at(second), reports, time.Second)
		assert.LessOrEqual(t, len(w.moments), 12)
	}
	assert.Equal(t, at(59), w.Now())
	for long, want := range map[time.Duration]float64{time.Second: 1, 5 * time.Second: 5, time.Hour: 11} {
		assert.Equal(t, want, w.Since(long)[0].Seconds, long)
	}
	assert.True(t, w.Since(0)[0].Whole)
}
