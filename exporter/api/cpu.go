package api

import (
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// readEvery is how long what the kernel says of a rank may stand: longer than its agent waits before it reads again.
const readEvery = 6 * time.Second

// cpuOf describes what the kernel says of a rank. Most of it is not in every sample: then what was known before stands,
// unless the agent should have read it again, and may not any more. nil: nothing is known.
func cpuOf(u *mpit.UnderWay, was *CPU, last bool) *CPU {
	var (
		c CPU
		t = mpit.Thread{CPU: -1, Queue: -1}
	)
	if len(u.Threads) > 0 {
		t = u.Threads[0]
	}
	switch k := u.Kernel; {
	case k != nil:
		c = CPU{At: t.Now.Seconds(), Cores: k.Cores, Nice: k.Nice, Resident: uint64(max(k.Resident, 0)), GPU: k.GPU,
			In: clean.Label(t.In)}
		if t.CPU >= 0 && t.Queue >= 0 {
			c.Thread, c.Queue = new(t.CPU.Seconds()), new(t.Queue.Seconds())
			if u.CPU > 0 {
				c.Process = new(u.CPU.Seconds())
			}
		}
		if k.MajorFaults >= 0 {
			c.MajorFaults = new(uint64(k.MajorFaults))
		}
		if k.Throttled >= 0 {
			c.Throttled = new(k.Throttled.Seconds())
		}
	case was != nil && (last || t.Now.Seconds()-was.At <= readEvery.Seconds()):
		c = *was
		if t.Begun != 0 {
			c.In = ""
		}
	}
	if u.CPU > 0 {
		c.Seconds = new(u.CPU.Seconds())
	}
	if c == (CPU{}) {
		return nil
	}
	return &c
}
