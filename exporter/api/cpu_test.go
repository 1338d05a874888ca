package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestCPU(t *testing.T) {
	asleep := mpit.Thread{Now: 9 * time.Second, CPU: 2 * time.Second, Queue: time.Second, In: "nanosleep\x1b"}
	inMPI := mpit.Thread{Now: 10 * time.Second, Begun: 9 * time.Second, CPU: -1, Queue: -1}
	outside := mpit.Thread{Now: 11 * time.Second, CPU: -1, Queue: -1}
	full := CPU{Seconds: new(3.0), Thread: new(2.0), Process: new(3.0), Queue: new(1.0), At: 9, Cores: 2, Nice: 19, MajorFaults: new(uint64(5)),
		Resident: 4096, In: "nanosleep\ufffd", GPU: true, Throttled: new(0.5)}
	later, called, awake := full, full, full
	later.Seconds = new(4.0)
	called.Seconds, called.In = new(4.0), ""
	awake.In, awake.GPU, awake.At = "", false, 11
	awake.Thread, awake.Queue = new(2.5), new(1.0)
	onCore, denied := outside, outside
	onCore.CPU, onCore.Queue = 2500*time.Millisecond, time.Second
	denied.Now = 16 * time.Second
	kernel := mpit.Kernel{Cores: 2, Nice: 19, MajorFaults: 5, Resident: 4096, GPU: true,
		Throttled: time.Second / 2}
	busy := kernel
	busy.GPU = false
	unscheduled := awake
	unscheduled.Seconds, unscheduled.Thread, unscheduled.Process, unscheduled.Queue = nil, nil, nil, nil
	for name, c := range map[string]struct {
		u    mpit.UnderWay
		was  *CPU
		want *CPU
	}{
		"nothing":            {mpit.UnderWay{CPU: -1}, nil, nil},
		"an older agent":     {mpit.UnderWay{CPU: -1}, &full, &full},
		"all":                {mpit.UnderWay{CPU: 3 * time.Second, Threads: []mpit.Thread{asleep}, Kernel: &kernel}, nil, &full},
		"between two":        {mpit.UnderWay{CPU: 4 * time.Second, Threads: []mpit.Thread{outside}}, &full, &later},
		"in a call again":    {mpit.UnderWay{CPU: 4 * time.Second, Threads: []mpit.Thread{inMPI}}, &full, &called},
		"awake":              {mpit.UnderWay{CPU: 3 * time.Second, Threads: []mpit.Thread{onCore}, Kernel: &busy}, &full, &awake},
		"no schedstat":       {mpit.UnderWay{CPU: -1, Threads: []mpit.Thread{outside}, Kernel: &busy}, nil, &unscheduled},
		"not read any more":  {mpit.UnderWay{CPU: 4 * time.Second, Threads: []mpit.Thread{denied}}, &full, &CPU{Seconds: new(4.0)}},
		"only the process's": {mpit.UnderWay{CPU: time.Second}, nil, &CPU{Seconds: new(1.0)}},
		"kernel knows little": {mpit.UnderWay{CPU: -1, Kernel: &mpit.Kernel{Nice: 1, MajorFaults: -1, Resident: -1, Throttled: -1}},
			nil,
			&CPU{Nice: 1}},
	} {
		assert.Equal(t, c.want, cpuOf(&c.u, c.was, false), name)
	}
	later.At = full.At
	assert.Equal(t, &later, cpuOf(&mpit.UnderWay{CPU: 4 * time.Second, Threads: []mpit.Thread{denied}}, &full, true),
		"the last sample")
}

// Not every sample says how long the program has switched measuring off.
func TestPaused(t *testing.T) {
	s := mpit.Sample{UnderWay: &mpit.UnderWay{CPU: 3 * time.Second}, Stats: mpit.AgentStats{PausedTime: 2 * time.Second}}
	first := CallsOf(&s, StateSeconds{}, nil)
	assert.Equal(t, &CPU{Seconds: new(3.0), Paused: 2}, first.CPU)
	s.UnderWay.Kernel, s.Stats.PausedTime = &mpit.Kernel{}, 0
	assert.InDelta(t, 2, CallsOf(&s, StateSeconds{}, first.CPU).CPU.Paused, 0)
	s.Stats.PausedTime, s.UnderWay.CPU = 4*time.Second, -1
	assert.InDelta(t, 4, CallsOf(&s, StateSeconds{}, first.CPU).CPU.Paused, 0)
	s.UnderWay.Kernel = nil
	assert.Nil(t, CallsOf(&s, StateSeconds{}, nil).CPU, "of nothing")
}
