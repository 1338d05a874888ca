package api

import (
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// cpuOf describes what the kernel says of a rank. Most of it is not in every sample: then what was known before stands.
// nil: nothing is known.
func cpuOf(u *mpit.UnderWay, was *CPU) *CPU {
	var c CPU
	if was != nil {
		c = *was
	}
	if u.CPU > 0 {
		c.Seconds = new(u.CPU.Seconds())
	}
	if len(u.Threads) > 0 {
		t := &u.Threads[0]
		if t.CPU >= 0 && t.Queue >= 0 {
			c.Thread, c.Queue, c.At = new(t.CPU.Seconds()), new(t.Queue.Seconds()), t.Now.Seconds()
		}
		if u.Kernel != nil || t.Begun != 0 {
			c.In = clean.Label(t.In)
		}
	}
	if k := u.Kernel; k != nil {
		c.Cores, c.Nice, c.Resident, c.GPU = k.Cores, k.Nice, uint64(max(k.Resident, 0)), k.GPU
		if k.MajorFaults >= 0 {
			c.MajorFaults = new(uint64(k.MajorFaults))
		}
		if k.Throttled >= 0 {
			c.Throttled = new(k.Throttled.Seconds())
		}
	}
	if c == (CPU{}) {
		return nil
	}
	return &c
}
